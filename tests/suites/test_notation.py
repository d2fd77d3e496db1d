"""Linguists' notation: the papers' own examples, as they are printed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.suites import build_pair_suite, load_suite, make_pair
from acceptability.suites.brackets import expand_example, read_marks
from acceptability.suites.notation import write_notation


def read(tmp_path: Path, text: str, marks="=1"):
    """The suite of a file that is said to be in notation, as some of these examples have no mark."""
    path = tmp_path / "examples.txt"
    path.write_text(text, encoding="utf-8")
    return load_suite(str(path), marks=marks)


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
    "#tag",
    "%x",
    "✓",
    "OK",
    "x_i",
    "__",
    "%%",
    "＊",
    "b.",
    "ɴᴏᴍ",
    "(?)",
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


TEXT = ["The cats sleep.", "Who (really) left? It rained (a lot).", "It cost 5 % (or 6) of 10 * 3."]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(TEXT),
        "# A heading\nThe cats sleep.\n",
        "* first\n* second\n",
        "OK then I left.\nShe came.\n",
        "[laughter] Who left?\n",
        "(1) The cats sleep.\n(2) a. They left.\n",
        "The file_name of 10%a.\n",
    ],
    ids=["text", "heading", "bullets", "OK", "transcript", "numbers", "other signs"],
)
def test_a_text_without_marks_is_asked_about_and_not_labelled(tmp_path: Path, text: str) -> None:
    with pytest.raises(SuiteError, match="neither judgement marks nor alternatives.*--marks none.*--marks '=1'"):
        read(tmp_path, text, marks=None)
    suite = read(tmp_path, text, marks="none")
    assert [sentence.text for sentence in suite.sentences] == text.strip().splitlines()
    assert not suite.contrasts
    assert {sentence.label for sentence in suite.sentences} == {None}


@pytest.mark.parametrize(
    "line",
    [
        "*The dog bark.",
        "(3) b. ??The dog bark.",
        "✓ The dog barks.",
        "%The car needs washed.",
        "(?) The dog bark.",
        "The dog [barks/*bark].",
        "He relies *(on) her.",
        "He ate (*at) it.",
        "[NP The dog] barks.",
        "good\tThe dog barks.",
        "* The dog bark.",
    ],
)
def test_one_mark_or_bracket_is_enough(tmp_path: Path, line: str) -> None:
    suite = read(tmp_path, f"The cats sleep.\n{line}\n", marks=None)
    assert (suite.sentences[0].text, suite.sentences[0].label) == ("The cats sleep.", 1)


def test_what_is_said_to_have_no_marks_has_none(tmp_path: Path) -> None:
    with pytest.raises(
        SuiteError, match=r"line 2: '\*The dog bark.' begins with a mark, and the file was said to have"
    ):
        read(tmp_path, "The dog barks.\n*The dog bark.\n", marks="none")


@pytest.mark.parametrize(
    ("line", "text", "label", "mark"),
    [
        ("✓The dog barks.", "The dog barks.", 1, "✓"),
        ("✔ The dog barks.", "The dog barks.", 1, "✓"),
        ("OK The dog barks.", "The dog barks.", 1, "OK"),
        ("(4) a. ok The dog barks.", "The dog barks.", 1, "OK"),
        ("OK (4) The dog barks.", "The dog barks.", 1, "OK"),
        ("OK, let's go.", "OK, let's go.", 1, ""),
        (r"\OK is a word.", "OK is a word.", 1, ""),
        ("＊犬が吠えた。", "犬が吠えた。", 0, "*"),
        ("∗ The dog bark.", "The dog bark.", 0, "*"),
        ("*\tThe dog bark.", "The dog bark.", 0, "*"),
        ("(4)\ta.\t*The dog bark.", "The dog bark.", 0, "*"),
        ("Ungrammatical\tThe dog bark.", "The dog bark.", 0, "*"),
        ("good\tThe dog barks.", "The dog barks.", 1, "OK"),
        ("(4) bad\tThe dog bark.", "The dog bark.", 0, "*"),
        ("50 % of dogs bark at #1.", "50 % of dogs bark at #1.", 1, ""),
        ("[NP The dog] [VP barks].", "The dog barks.", 1, ""),
        ("*[CP Who [TP did [DP the dog ] bark [PP at ]]]?", "Who did the dog bark at?", 0, "*"),
        ("[NP The dog][VP bit [NP me ]].", "The dog bit me.", 1, ""),
        ("[S Dogs [V' bark]].", "Dogs bark.", 1, ""),
    ],
)
def test_marks_and_constituents(tmp_path: Path, line: str, text: str, label: int, mark: str) -> None:
    (sentence,) = read(tmp_path, line).sentences
    assert (sentence.text, sentence.label, sentence.tags["mark"]) == (text, label, mark)


def test_alternatives_within_a_constituent(tmp_path: Path) -> None:
    suite = read(tmp_path, "[NP The [dog/*dogs]] barks [PP (*at) loudly].\n")
    assert {(sentence.text, sentence.label) for sentence in suite.sentences} == {
        ("The dog barks loudly.", 1),
        ("The dog barks at loudly.", 0),
        ("The dogs barks loudly.", 0),
        ("The dogs barks at loudly.", 0),
    }


def test_marks_without_a_label_are_left_out_with_their_line(tmp_path: Path, caplog) -> None:
    text = "The dog barks.\n%The car needs washed.\n(?)Who what saw?\n"
    assert len(read(tmp_path, text, marks=None)) == 1
    assert "line 2: left out, marked %: The car needs washed." in caplog.text
    assert "line 3: left out, marked (?): Who what saw?" in caplog.text
    kept = read(tmp_path, text, marks="%=1,(?)=0")
    assert [sentence.label for sentence in kept.sentences] == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("The dog ✓barks.", r"line 1, column 9: '✓' in the middle"),
        ("The dog ?bark.", r"line 1, column 9: '\?' in the middle of a sentence.*write \\\?"),
        ("The [big/?large #dog] bark.", r"line 1, column 5: '#' in the middle"),
        ("The dog bark. (*)", r"line 1, column 15: \(\*\) holds a mark and no words. Write the mark before"),
        ("The dog barks. (OK)", r"line 1: the judgement \(OK\) stands after the sentence"),
        ("Which book_i did you read t_i?", r"line 1, column 11: '_i' looks like a gap or an index"),
        ("Who did you see __?", r"line 1, column 17: '__' looks like a gap"),
        ("[NP the dog/*the dogs] barks.", r"line 1, column 1: a label of a constituent and alternatives in one pair"),
        ("[NP The dog barks.", r"line 1, column 1: '\[' is not closed"),
        ("The dog barks.\tEl perro ladra.", r"line 1: a tab within 'The dog barks.\\tEl perro"),
        ("1\tThe dog barks.", r"line 1: a tab within .* one of the words good, "),
        ("bad\t*The dog bark.", "line 1: two judgements"),
        ("?#The dog bark.", r"line 1, column 1: '\?#' is not a mark"),
    ],
)
def test_nothing_that_looks_like_a_mark_is_scored(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        read(tmp_path, text)


def test_comments_and_glosses_in_small_capitals_are_skipped_with_their_line(tmp_path: Path, caplog) -> None:
    text = (
        "%% from my notes\n"
        "(1) Taroo-ga hon-o yonda.\n"
        "    Taro-ɴᴏᴍ book-ᴀᴄᴄ read\n"
        "    ‘Taro didn’t read a book.’ (Kuno 1973: 12)\n"
        "(2) *Inu-ga hoeta ka.\n"
        "    dog-\\textsc{nom} barked \\textsc{q}\n"
        "    Lit.: ‘Dog barked?’\n"
        "(3) Juan no come.\n"
        "    John NEG eat.3SG\n"
        "(4) Ich habe gelesen.\n"
        "    I have read\n"
        "    'I've read.'\n"
    )
    suite = read(tmp_path, text, marks=None)
    assert [sentence.text for sentence in suite.sentences] == [
        "Taroo-ga hon-o yonda.",
        "Inu-ga hoeta ka.",
        "Juan no come.",
        "Ich habe gelesen.",
    ]
    kinds = {1: "a comment", 3: "a gloss", 4: "a translation", 6: "a gloss", 7: "a translation", 9: "a gloss"}
    for number, kind in {**kinds, 11: "a gloss", 12: "a translation"}.items():
        assert f"line {number}: skipped, {kind}" in caplog.text


def test_quoted_speech_is_no_translation(tmp_path: Path) -> None:
    lines = ["‘Go’, he said, ‘now’", "‘Go’, he said."]
    assert [sentence.text for sentence in read(tmp_path, "\n".join(lines)).sentences] == lines


def test_several_examples_in_a_line(tmp_path: Path) -> None:
    suite = read(
        tmp_path, "(12) a. The dog barks. b. *The dog bark. c. Plan b. failed.\n(13) a. I left  b. *I leaves\n"
    )
    assert [(sentence.id, sentence.tags["example"], sentence.text, sentence.label) for sentence in suite.sentences] == [
        ("1a", "12a", "The dog barks.", 1),
        ("1b", "12b", "The dog bark.", 0),
        ("1c", "12c", "Plan b. failed.", 1),
        ("2a", "13a", "I left", 1),
        ("2b", "13b", "I leaves", 0),
    ]
    assert [sentence.tags["item"] for sentence in suite.sentences] == ["1a", "1b", "1c", "2a", "2b"]


def test_an_example_over_several_lines(tmp_path: Path, caplog) -> None:
    text = (
        "(12) a. *The dog that the cat which I\n"
        "        saw chased bark.\n"
        "     b. The dog that the cat\n"
        "chased barks. (relative clauses)\n"
        "     The cats sleep.\n"
        "(13) Dogs bark.\n"
        "     Cats sleep.\n"
    )
    suite = read(tmp_path, text, marks=None)
    assert [(sentence.id, sentence.text, sentence.label) for sentence in suite.sentences] == [
        ("1", "The dog that the cat which I saw chased bark.", 0),
        ("3", "The dog that the cat chased barks.", 1),
        ("5", "The cats sleep.", 1),
        ("6", "Dogs bark.", 1),
        ("7", "Cats sleep.", 1),
    ]
    assert suite["3"].tags["phenomenon"] == "relative clauses"
    assert "line 2: read as the rest of line 1" in caplog.text
    assert "line 4: read as the rest of line 3" in caplog.text


def test_a_sentence_at_the_margin_with_a_capital_begins_anew(tmp_path: Path) -> None:
    suite = read(tmp_path, "(13) *Dogs barks\nCats sleep\n")
    assert [sentence.text for sentence in suite.sentences] == ["Dogs barks", "Cats sleep"]


def test_sentences_without_full_stops_and_numbers_are_not_joined(tmp_path: Path) -> None:
    suite = read(tmp_path, "betsy buttered the toast\n  *betsy buttered at the toast\n  the dog barks\n")
    assert [sentence.text for sentence in suite.sentences] == [
        "betsy buttered the toast",
        "betsy buttered at the toast",
        "the dog barks",
    ]
