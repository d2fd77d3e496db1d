"""Data sets of the Hub, read from local folders of their layout; all sentences are invented."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptability import evaluate
from acceptability.errors import SuiteError
from acceptability.suites import load_catalog, load_contents, load_suite
from acceptability.suites.catalog import fetch_files, find_entries, is_available, verify_files

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into a folder that holds the local copies."""
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))

    def write_file(path: str, content: str) -> Path:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        return target

    return write_file


GERMAN = (
    "sen\twrong_sen\tphenomenon\tverb\ttreebank\n"
    "Die Katzen schlafen.\tDie Katzen schläft.\tSV-#\tschlafen\tGSD\n"
    '"Der Hund rief: ""Wuff""."\tDer Hund riefst: Wuff.\tSV-P\t\tGSD\n'
)
BASQUE = "sen\twrong_sen\tphenomenon\nNik ikusi dut.\tNik ikusi du.\tSV-P\n"


def test_a_language_of_multiblimp_from_a_clone_of_the_data_set(write: Write, caplog) -> None:
    write("multiblimp/deu/data.tsv", GERMAN)
    write("multiblimp/README.md", "---\nconfigs: []\n---\n")
    suite = load_suite("multiblimp/deu")
    assert (suite.name, len(suite.contrasts), suite.unit) == ("multiblimp/deu", 2, "item")
    good, bad, quoted, _ = suite.sentences
    assert (good.id, good.text, good.label) == ("multiblimp/deu/1/good", "Die Katzen schlafen.", 1)
    assert (bad.text, bad.label) == ("Die Katzen schläft.", 0)
    assert quoted.text == 'Der Hund rief: "Wuff".'
    tags = {"item": "multiblimp/deu/1", "phenomenon": "SV-#", "verb": "schlafen", "treebank": "GSD", "language": "de"}
    assert dict(good.tags) == tags
    assert "verb" not in quoted.tags
    assert "this copy has 2 contrasts; the published data set has 2298" in caplog.text


def test_languages_on_this_machine_are_read_together_and_the_others_said(write: Write, caplog) -> None:
    write("multiblimp/deu/data.tsv", GERMAN)
    write("multiblimp/eus/data.tsv", BASQUE)
    suite = load_suite("multiblimp")
    assert [contrast.tags["language"] for contrast in suite.contrasts] == ["de", "de", "eu"]
    assert "2 of 101 data sets are on this machine (multiblimp/deu, multiblimp/eus)" in caplog.text
    results = evaluate(suite, ["uniform"], measure="PairAccuracy", by="language")
    assert {"language=de": 2, "language=eu": 1}.items() <= {result.group: result.n for result in results}.items()


def test_a_language_that_is_not_there(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("multiblimp/deu/data.tsv", GERMAN)
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(SuiteError, match=r"(?s)multiblimp/fra.*no network.*put a copy at multiblimp/fra in the folder"):
        load_suite("multiblimp/fra")
    (entry,) = find_entries("multiblimp/fra")
    with pytest.raises(
        SuiteError, match=r"no tables in multiblimp/fra .*\(there are: deu\).* suites fetch multiblimp/fra"
    ):
        verify_files(entry)
    assert load_contents(entry) is None


def test_what_is_downloaded_is_kept(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", "")
    pytest.importorskip("datasets")
    asked = []

    def load_dataset(*name: str, revision: str | None = None) -> dict[str, list[dict[str, object]]]:
        asked.append((*name, revision))
        return {"train": [{"sen": "Nik ikusi dut.", "wrong_sen": "Nik ikusi du.", "distance": 2, "head": float("nan")}]}

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    (entry,) = find_entries("multiblimp/eus")
    assert not is_available(entry)
    assert [path.name for path in fetch_files(entry)] == ["eus.jsonl"]
    assert is_available(entry)
    suite = load_suite("multiblimp/eus")
    assert dict(suite.sentences[0].tags) == {"item": "multiblimp/eus/1", "distance": "2", "language": "eu"}
    assert asked == [("jumelet/multiblimp", "eus", None)]
    assert list(verify_files(entry)) == ["eus.jsonl"]


EWOK = (
    "Domain,ConceptA,ConceptB,TargetDiff,ContextDiff,MetaTemplateID,TemplateID,Version,Target1,Target2,Context1,Context2\n"
    "toy-domain,wet,dry,swap,antonym,7,2,0,Noor hangs it on the line.,Noor folds it away.,"
    "The shirt is wet.,The shirt is dry.\n"
)


def test_ewok_scores_each_target_in_both_contexts(write: Write) -> None:
    write("ewok/test.csv", EWOK)
    suite = load_suite("ewok")
    assert (len(suite.sentences), suite.unit) == (4, "template")
    pairs = [(suite[contrast.better], suite[contrast.worse]) for contrast in suite.contrasts]
    assert [(good.text, good.tags["context"], bad.tags["context"]) for good, bad in pairs] == [
        ("Noor hangs it on the line.", "The shirt is wet.", "The shirt is dry."),
        ("Noor folds it away.", "The shirt is dry.", "The shirt is wet."),
    ]
    assert all(good.text == bad.text for good, bad in pairs)
    tags = suite.contrasts[0].tags
    assert (tags["template"], tags["domain"], tags["ConceptA"]) == ("toy-domain/7/2", "toy-domain", "wet")
    assert "Domain" not in tags


def test_columns_in_other_spellings(write: Write) -> None:
    header, row = EWOK.splitlines()
    for old, new in (("MetaTemplateID", "meta_template_id"), ("TemplateID", "template_id"), ("Domain", "domain")):
        header = header.replace(old, new)
    assert "meta_template_id" in header
    write("ewok/test.csv", EWOK)
    published = load_suite("ewok")
    write("ewok/test.csv", f"{header}\n{row}\n")
    assert [one.tags["template"] for one in load_suite("ewok")] == [one.tags["template"] for one in published]


def test_a_table_of_another_layout_is_refused(write: Write) -> None:
    write("ewok/test.csv", EWOK.replace("Context2", "Situation2"))
    with pytest.raises(
        SuiteError, match=r"ewok/test.csv, row 2: nothing in 'context2'; the columns are Domain, .*huggin"
    ):
        load_suite("ewok")
    write("multiblimp/eus/data.tsv", "sen\twrong_sen\nNik ikusi dut.\t\n")
    with pytest.raises(SuiteError, match=r"multiblimp/eus/data.tsv, row 2: nothing in 'wrongsen'"):
        load_suite("multiblimp/eus")


def comps_row(number: int, **more: str) -> str:
    row = {"id": number, "property": "can float", "acceptable_concept": "cork", "unacceptable_concept": "anchor"}
    row |= {"prefix_acceptable": "A cork", "prefix_unacceptable": "An anchor", "property_phrase": "can float."}
    return json.dumps(row | {"negative_sample_type": "random", "similarity": 0.25} | more) + "\n"


def test_the_files_of_comps_are_told_apart(write: Write) -> None:
    write("comps/comps_base.jsonl", comps_row(1) + comps_row(2))
    write("comps/comps_wugs.jsonl", comps_row(1))
    write("comps/comps_wugs_dist-before.jsonl", comps_row(1, distraction_type="before"))
    write("comps/comps_wugs_dist-in-between.jsonl", comps_row(1, distraction_type="in-between"))
    sizes = {name: len(load_suite(f"comps/{name}").contrasts) for name in ("base", "wugs", "wugs_dist")}
    assert sizes == {"base": 2, "wugs": 1, "wugs_dist": 2}
    suite = load_suite("comps/base")
    good, bad = suite.sentences[:2]
    assert (good.text, good.tags["context"], bad.tags["context"]) == ("can float.", "A cork", "An anchor")
    assert (suite.unit, good.tags["property"], good.tags["similarity"]) == ("property", "can float", "0.25")
    assert {c.tags["distraction_type"] for c in load_suite("comps/wugs_dist").contrasts} == {"before", "in-between"}


def test_the_supplement_of_babylm(write: Write) -> None:
    rows = {"hypernym": "A rose is a flower.", "turn_taking": "A: Is it yours?\nB: Yes, it is mine."}
    for name, good in rows.items():
        row = json.dumps({"sentence_good": good, "sentence_bad": good.replace("is", "am"), "UID": name})
        write(f"babylm/supplement_filtered/{name}.jsonl", f"{row}\n")
    suite = load_suite("babylm/supplement_filtered")
    assert [contrast.tags["paradigm"] for contrast in suite.contrasts] == ["hypernym", "turn_taking"]
    assert "\n" in suite["babylm/supplement_filtered/turn_taking/2/good"].text


def test_every_language_of_multiblimp_is_in_the_catalog() -> None:
    entries = [entry for entry in load_catalog() if entry.id.startswith("multiblimp/")]
    assert len(entries) == 101
    assert all(entry.id == f"multiblimp/{entry.config}" and len(entry.config) == 3 for entry in entries)
    assert sum(entry.contrasts for entry in entries) == 121_305
    languages = {entry.config: entry.language for entry in entries}
    assert (languages["deu"], languages["fra"], languages["arb"], languages["grc"]) == ("de", "fr", "ar", "grc")
