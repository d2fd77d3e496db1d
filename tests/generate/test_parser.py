"""Paradigm files: valid ones are parsed, and every mistake is reported with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability import generate
from acceptability.errors import SuiteError
from acceptability.generate import generate_suite
from acceptability.generate.generator import build_suite, generate_sentences
from acceptability.generate.parser import find_line, locate_keys, read_paradigms

GOOD = """\
name = "toy"

[[paradigm]]
name = "number"
count = 5
sentence = "the {doer number=$subject} {verb number=$verb} {where}."
acceptable = ["subject=sg verb=sg", "subject=pl verb=pl"]
pairs = ["verb"]

[paradigm.slots]
doer = "noun kind=person countability=count"
verb = "verb frame=intransitive subject=@doer.kind form=present"
where = ["here", "there"]

[paradigm.factors]
subject = ["sg", "pl"]
verb = ["sg", "pl"]
"""


def read(text: str):
    return read_paradigms(text, "toy.toml")


def test_a_good_file_makes_a_suite() -> None:
    suite = build_suite("toy", generate_sentences([read(GOOD)], seed=1))
    assert len(suite.sentences) == 20
    assert len(suite.contrasts) == 10
    assert suite.contrasts[0].tags["set"] == "toy/number/1"
    first = suite.sentences[0]
    assert first.id == "toy/number/1/sg-sg"
    assert first.text.startswith("The ")
    assert first.tags["subject"] == "sg"
    assert len({sentence.text for sentence in suite.sentences}) == 20


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("kind=person", "knd=person", 11, "a noun has no feature 'knd'. Did you mean 'kind'?"),
        ("kind=person", "kind=persn", 11, "kind has no value 'persn'. Did you mean 'person'?"),
        ("= \"noun kind", "= \"nown kind", 11, "there is no category 'nown'. Did you mean 'noun'?"),
        ("kind=person", "kind=person gender=neuter", 11, "no word fits the slot 'doer': none is left after gender="),
        ("@doer.kind", "@dour.kind", 12, "there is no earlier slot 'dour'. Did you mean 'doer'?"),
        ("@doer.kind", "@doer.frame", 12, "a noun has no feature 'frame'"),
        ("{verb number=$verb}", "{verbs}", 6, "there is no slot or part 'verbs'. Did you mean 'verb'?"),
        ("number=$verb", "number=$verbs", 6, "there is no factor 'verbs'. Did you mean 'verb'?"),
        ("number=$verb", "frame=transitive", 6, "frame of a verb is not chosen in a sentence; put it in the slot"),
        ("{where}.", "{where.", 6, "a brace is not closed"),
        ("verb=sg\",", "verbe=sg\",", 7, "there is no factor 'verbe'. Did you mean 'verb'?"),
        ("verb=pl\"]", "verb=du\"]", 7, "there is no value of verb 'du'"),
        ("\nverb = [\"sg\", \"pl\"]", "", 8, "there is no factor 'verb'"),
        ("number=$subject", "number=sg", 16, "the factor 'subject' has no effect"),
        ("count = 5", "counts = 5", 5, "a paradigm has no key 'counts'. Did you mean 'count'?"),
        ("count = 5", "count = \"5\"", 5, "count is '5'; expected a number"),
        ("count = 5", "", 3, "set either count"),
        ("[\"here\", \"there\"]", "[]", 13, "slot 'where' has nothing to choose from"),
        ("pairs = [\"verb\"]", "pairs = [\"noun\"]", 8, "there is no factor 'noun'"),
        ("[\"here\", \"there\"]", "\"adverb sense=degree lemma=today\"", 13, "none is left after lemma=today"),
        ("verb=sg\", \"subject=pl verb=pl\"]", "subject=pl\"]", 7, "no condition of the paradigm is acceptable"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SuiteError) as error:
        read(GOOD.replace(old, new, 1))
    assert str(error.value).startswith(f"toy.toml, line {line}: ")
    assert message in str(error.value)


PART = GOOD.replace("{where}", "{place}") + '\n[paradigm.parts.place]\n"verb=sg" = "here"\n'


def test_a_part_needs_one_text_for_every_condition() -> None:
    with pytest.raises(SuiteError, match=r"toy.toml, line 19: the part 'place' has no text for subject=sg verb=pl"):
        read(PART)
    with pytest.raises(SuiteError, match=r"line 19: the part 'place' has 2 texts for subject=sg verb=sg"):
        read(PART + '"verb=sg|pl" = "there"\n')
    assert read(PART + '"verb=pl" = "there"\n').name == "toy"


def test_invalid_toml_is_reported_with_its_line() -> None:
    with pytest.raises(SuiteError, match=r"toy.toml: not TOML: .*line 2"):
        read('name = "toy"\nparadigm =\n')


def test_slots_that_do_not_fit_together_are_reported_with_their_line() -> None:
    text = GOOD.replace("subject=@doer.kind form=present", "frame=transitive form=present").replace(
        "kind=person", "kind=question"
    )
    file = read(GOOD.replace("kind=person", "kind=question"))
    with pytest.raises(
        SuiteError, match=r"toy.toml, line 12: no word fits the slot 'verb': .*subject=@doer.kind \(question\)"
    ):
        list(generate_sentences([file], seed=1))
    with pytest.raises(SuiteError, match="line 12: no word fits the slot 'verb'"):
        read(text)


def test_too_many_paradigms_are_an_error_and_not_repeated() -> None:
    file = read(GOOD.replace("kind=person", "lemma=cat|dog").replace("subject=@doer.kind", "lemma=sleep"))
    file = file.with_counts({"number": 50})
    with pytest.raises(SuiteError, match="line 3: after 4 paradigms every further one repeats a sentence"):
        list(generate_sentences([file], seed=1))


def test_a_file_may_define_words() -> None:
    own = '\n[[word]]\ncategory = "noun"\nlemma = "blick"\nplural = "blicken"\nkind = "adult"\n'
    file = read(GOOD.replace("kind=person countability=count", "lemma=blick") + own)
    texts = [row.sentence.text for row in generate_sentences([file], seed=1)]
    assert all("blick" in text for text in texts)
    assert any("blicken" in text for text in texts)
    with pytest.raises(SuiteError, match=r"line 19: a noun needs 'plural', or countability = \"mass\""):
        read(GOOD + own.replace('plural = "blicken"\n', ""))


def test_the_same_seed_gives_the_same_sentences(tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(GOOD)
    first, second, other = (generate_suite(str(path), seed=seed) for seed in (1, 1, 2))
    assert first.hash == second.hash != other.hash


def test_lines_are_found_in_tables_arrays_and_long_values() -> None:
    lines = locate_keys(
        'a = """\nb = 1\n"""\n[[p]]\nrows = [\n  ["x = 1"],\n]\n[p.q."r s"]\n"t=1" = 2\n[[p]]\n[p.q]\nz = 1\n'
    )
    assert lines[("p", 0, "rows")] == 5
    assert lines[("p", 0, "q", "r s", "t=1")] == 9
    assert lines[("p", 1, "q", "z")] == 12
    assert ("b",) not in lines
    assert find_line(lines, ("p", 1, "q", "missing")) == 11


def test_the_file_of_the_documentation_generates_the_sentences_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "paradigms.md").read_text(encoding="utf-8")
    example, _, part = page.partition("```toml\n")[2].partition("```")
    path = tmp_path / "toy.toml"
    path.write_text(example)
    suite = generate_suite(str(path), seed=1)
    assert (len(suite.sentences), len(suite.contrasts)) == (800, 400)
    assert "800 sentences and 400 contrasts" in page
    shown = "".join(f"{sentence.label} {sentence.text}\n" for sentence in suite.sentences[:4])
    assert f"(label, sentence):\n\n```text\n{shown}```\n" in page
    extra = part.partition("```toml\n")[2].partition("```")[0]
    npi = (Path(generate.__file__).parent / "data" / "paradigms" / "npi" / "adverbs.toml").read_text(encoding="utf-8")
    assert extra in npi, "the part that the page shows is one that comes with the package"
