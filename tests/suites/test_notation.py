"""Linguists' notation: the papers' own examples, as they are printed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.suites import build_pair_suite, load_suite, make_pair
from acceptability.suites.notation import expand_example, read_marks, write_notation


def read(tmp_path: Path, text: str, **options):
    path = tmp_path / "examples.txt"
    path.write_text(text, encoding="utf-8")
    return load_suite(str(path), **options)


def pairs(suite) -> list[tuple[str, str]]:
    return [(suite.by_id[contrast.better].text, suite.by_id[contrast.worse].text) for contrast in suite.contrasts]


def test_the_example_of_the_cola_paper(tmp_path: Path) -> None:
    suite = read(tmp_path, "Betsy buttered (*at) the toast\n")
    assert [(sentence.text, sentence.label) for sentence in suite.sentences] == [
        ("Betsy buttered the toast", 1),
        ("Betsy buttered at the toast", 0),
    ]
    assert pairs(suite) == [("Betsy buttered the toast", "Betsy buttered at the toast")]


PARK = {
    "- (1) a. The little boy is [speaking/*speak] to a policeman. (present progressive)": (
        "The little boy is speaking to a policeman.",
        "The little boy is speak to a policeman.",
    ),
    " b. Tom is reading [a book/*book] in the bathtub. (determiners)": (
        "Tom is reading a book in the bathtub.",
        "Tom is reading book in the bathtub.",
    ),
    "- c. Peter made out the check but didn't [sign it/*sign]. (pronominalization)": (
        "Peter made out the check but didn't sign it.",
        "Peter made out the check but didn't sign.",
    ),
    "- d. What [is Martha/*Martha is] bringing to the party? (wh-questions)": (
        "What is Martha bringing to the party?",
        "What Martha is bringing to the party?",
    ),
    "[Who the hell/*Who] brought who to the party?": (
        "Who the hell brought who to the party?",
        "Who brought who to the party?",
    ),
    "It seemed at that time [that Michelle had won/* Michelle had won].": (
        "It seemed at that time that Michelle had won.",
        "It seemed at that time Michelle had won.",
    ),
    "How many books [were there /*there were] on the table?": (
        "How many books were there on the table?",
        "How many books there were on the table?",
    ),
    "Our professor gave [no extensions to any students/*any extensions to no students].": (
        "Our professor gave no extensions to any students.",
        "Our professor gave any extensions to no students.",
    ),
}


def test_the_examples_of_park_and_others(tmp_path: Path) -> None:
    suite = read(tmp_path, "\n".join(PARK))
    assert pairs(suite) == list(PARK.values())
    first = suite.by_id[suite.contrasts[0].better]
    assert (first.tags["example"], first.tags["phenomenon"]) == ("1a", "present progressive")
    assert suite.by_id[suite.contrasts[1].better].tags["example"] == "1b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He ate (soup).", ["He ate.", "He ate soup."]),
        ("He relies *(on) her.", ["*He relies her.", "He relies on her."]),
        ("{Boil, Fry} an egg.", ["Boil an egg.", "Fry an egg."]),
        ("They {boil, *are} eggs.", ["They boil eggs.", "*They are eggs."]),
        ("??Who left?", ["??Who left?"]),
        ("*[He/She] left.", ["*He left.", "*She left."]),
        (r"She \(or he\) left \[now\].", ["She (or he) left [now]."]),
        ("(Yesterday) he left.", ["He left.", "Yesterday he left."]),
        (
            "It [has/*have] (*at) rained.",
            ["It has rained.", "*It has at rained.", "*It have rained.", "*It have at rained."],
        ),
    ],
)
def test_expansion(text: str, expected: list[str]) -> None:
    assert [variant.mark + variant.text for variant in expand_example(text)] == expected


@pytest.mark.parametrize(
    ("line", "example", "text", "label"),
    [
        ("(12) a.*The dog bark.", "12a", "The dog bark.", 0),
        ("(ii) The dog barks.", "ii", "The dog barks.", 1),
        ("(12') The dog barks.", "12", "The dog barks.", 1),
        ("12a. The dog barks.", "12a", "The dog barks.", 1),
        ("12) The dog barks.", "12", "The dog barks.", 1),
        ("a) The dog barks.", "a", "The dog barks.", 1),
        ("*(12) The dog bark.", "12", "The dog bark.", 0),
        ("(12) *a. The dog bark.", "12a", "The dog bark.", 0),
        ("- He left.", None, "He left.", 1),
        ("3.5 million people left.", None, "3.5 million people left.", 1),
        ("It costs 3.50 dollars at 10.30.", None, "It costs 3.50 dollars at 10.30.", 1),
        (
            "The COVID-19 pandemic and the pre-WWII era ended.",
            None,
            "The COVID-19 pandemic and the pre-WWII era ended.",
            1,
        ),
    ],
)
def test_numbers_are_distinguished_from_text(
    tmp_path: Path, line: str, example: str | None, text: str, label: int
) -> None:
    (sentence,) = read(tmp_path, line).sentences
    assert (sentence.tags.get("example"), sentence.text, sentence.label) == (example, text, label)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He said( that) she left.", ["He said she left.", "He said that she left."]),
        ("(The )dog barks.", ["Dog barks.", "The dog barks."]),
        ("He left (, too).", ["He left.", "He left, too."]),
        ("He ate\u00a0(*at) it.", ["He ate it.", "*He ate at it."]),
        ("* (That) he left.", ["*He left.", "*That he left."]),
    ],
)
def test_spaces_at_the_edges_of_brackets(text: str, expected: list[str]) -> None:
    assert [variant.mark + variant.text for variant in expand_example(text)] == expected


def test_a_number_without_an_example_is_skipped_with_a_note(tmp_path: Path, caplog) -> None:
    suite = read(tmp_path, "(12)\na. He left.\n")
    assert suite.sentences[0].tags["example"] == "12a"
    assert "line 1: skipped, a number without an example" in caplog.text


def test_contrasts_differ_in_one_choice(tmp_path: Path) -> None:
    suite = read(tmp_path, "It [has/*have] (*at) rained.\n")
    assert pairs(suite) == [("It has rained.", "It has at rained."), ("It has rained.", "It have rained.")]


def test_marks_have_colas_labels_by_default(tmp_path: Path, caplog) -> None:
    text = "*a b.\n??c d.\n*?e f.\n?g h.\n#i j.\nk l.\n"
    with caplog.at_level(logging.WARNING):
        suite = read(tmp_path, text)
    assert [(sentence.text, sentence.label) for sentence in suite.sentences] == [
        ("a b.", 0),
        ("c d.", 0),
        ("e f.", 0),
        ("k l.", 1),
    ]
    assert "line 4: left out, marked ?: g h." in caplog.text
    kept = read(tmp_path, text, marks=read_marks("?=1,#=0"))
    assert [sentence.label for sentence in kept.sentences] == [0, 0, 0, 1, 0, 1]
    with pytest.raises(SuiteError, match="MARK=drop"):
        read_marks("?=maybe")


def test_glosses_and_translations_are_skipped_with_a_note(tmp_path: Path, caplog) -> None:
    text = "(3) a. Taroo-ga hon-o yonda.\nTaro-Nom book-ACC read.PST\n‘Taro read a book.’\nb. *Taroo hon yonda.\n"
    with caplog.at_level(logging.WARNING):
        suite = read(tmp_path, text)
    assert [(sentence.text, sentence.tags["example"]) for sentence in suite.sentences] == [
        ("Taroo-ga hon-o yonda.", "3a"),
        ("Taroo hon yonda.", "3b"),
    ]
    assert "line 2: skipped, a gloss" in caplog.text
    assert "line 3: skipped, a translation" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Fine.\nHe [has/*have left.\n", r"line 2, column 4: '\[' is not closed"),
        ("He has] left.\n", r"line 1, column 7: '\]' closes nothing"),
        ("(1) a. He (has [not/*no]) left.\n", r"line 1, column 16: '\[' inside '\('"),
        ("He [has] left.\n", r"line 1, column 4: only one alternative"),
        ("He () left.\n", "line 1, column 4: the brackets are empty"),
        ("Who (do/*does) you like?\n", r"line 1, column 5: write alternatives in \[ \]"),
        ("He saw himself/*herself.\n", "line 1, column 16: a star in the middle"),
        ("(1) He *likes it. (agreement)\n", "line 1, column 8: a star in the middle"),
        ("**He left.\n", r"line 1, column 1: '\*\*' is not a mark"),
        ("(He left.)\n", "nothing is left of the example"),
        ("[a/b] " * 12, "expands to 4,096 sentences"),
        ("\n\n", "has no examples"),
    ],
)
def test_errors_in_brackets_name_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        read(tmp_path, text)


PIECES = [
    "3.5",
    "1.",
    "a.",
    "-",
    "iPhones",
    "The",
    "read-PST",
    "dog-NOM",
    "'x'",
    ". (so)",
    "the",
    "cat",
    "(old)",
    "[big]",
    "a/b",
    "*x",
    "?",
    "sleeps.",
    "{so}",
    "\\",
    "is",
    "it",
]
WORDS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_written_contrasts_parse_back(tmp_path_factory, rows) -> None:
    texts = [(" ".join(good), " ".join(bad)) for good, bad in rows]
    suite = build_pair_suite("s", [make_pair(str(index), good, bad, {}) for index, (good, bad) in enumerate(texts)])
    again = read(tmp_path_factory.mktemp("notation"), write_notation(suite))
    assert pairs(again) == texts


def test_the_starter_suite_round_trips(tmp_path: Path) -> None:
    suite = load_suite("starter")
    again = read(tmp_path, write_notation(suite))
    assert pairs(again) == pairs(suite)
    assert sorted((sentence.text, sentence.label) for sentence in again.sentences) == sorted(
        (sentence.text, sentence.label) for sentence in suite.sentences
    )
