"""A sentence of any text comes back as it went in, on every way through the package; or it is refused."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from acceptability.api.evaluation import evaluate
from acceptability.errors import AcceptabilityError, SuiteError
from acceptability.report.page import ReportHeading, build_browser, render_report
from acceptability.report.report_data import attach_suites, load_report_data
from acceptability.store.runs import save_run
from acceptability.store.scorefile import read_scores
from acceptability.store.scores import ScoreStore
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.suites import load_suite
from acceptability.suites.tables import write_jsonl
from acceptability.text.io import write_rows
from acceptability.types import Contrast, Query, Sentence, Suite, TokenScores

from .counting import SECONDS_EACH, counted
from .inputs import HOSTILE

LONG = "Cats sleep. " * 8_333 + "Yes!"
"""A sentence of 100,000 characters."""
KNOWN = (
    *HOSTILE,
    LONG,
    "e\u0301 שלום 👩‍👩‍👧‍👦 ＣＡＴＳ\r\nsleep\rnow\n",
    " padded\t",
    "\ufeffmarked",
    "a\0b",
    "\u200b",
)
any_text = st.sampled_from(KNOWN) | st.text(st.characters(exclude_categories=()), max_size=30)


def is_sentence(text: str) -> bool:
    """Tell whether a text can be a sentence: it is not empty, and UTF-8 can hold it."""
    return bool(text.strip()) and not re.search("[\ud800-\udfff]", text)


def pair(text: str) -> Suite:
    tags = {"text": text, "item": "1"}
    good, bad = Sentence("1/good", text, label=1, tags=tags), Sentence("1/bad", f"{text} x", label=0, tags=tags)
    return Suite("pair", (good, bad), (Contrast(good.id, bad.id, tags),))


def through_table(text: str, folder: Path, ending: str) -> str:
    path = folder / f"a{ending}"
    write_rows(path, [{"id": "1", "text": text}])
    return load_suite(str(path)).sentences[0].text


def through_parquet(text: str, folder: Path) -> str:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": [text]}), folder / "a.parquet")
    return load_suite(str(folder / "a.parquet")).sentences[0].text


def through_jsonl(text: str, folder: Path) -> str:
    write_jsonl(pair(text), folder / "b.jsonl")
    read = load_suite(str(folder / "b.jsonl"))
    assert read.hash == pair(text).hash
    return read.sentences[0].text


def through_the_store(text: str, folder: Path) -> str:
    query = Query(text)
    said = TokenScores(text, (text, f"{text}x"), ((0, 1), (0, len(text))), np.array([-1.5, -2.5], np.float32))
    with ScoreStore(folder / "store") as store:
        store.add("model", [(query.key, said)])
        ((index, found),) = store.iter_known("model", [query.key], lambda index: text)
    assert index == 0
    assert (found.text, found.tokens, found.offsets) == (text, said.tokens, said.offsets)
    (folder / "store").unlink()
    return str(found.tokens[0])


def through_a_run(text: str, folder: Path) -> str:
    results = evaluate(pair(text), ["uniform"], measure=["PairAccuracy"])
    assert results[0].units is not None
    assert results[0].units.tags[0]["text"] == text
    run = save_run("evaluate", text, [each.row() for each in results], collect_unit_rows(results), ["s"])
    with (run.folder / "units.csv").open(encoding="utf-8", newline="") as lines:
        assert next(iter(csv.DictReader(lines)))["tag/text"] == text
    return str(json.loads((run.folder / "units.json").read_text(encoding="utf-8"))[0]["tag/text"])


def through_a_report(text: str, folder: Path) -> str:
    suite = pair(text)
    results = evaluate(suite, ["uniform"], measure=["PairAccuracy"])
    signed = [each.signature for each in results]
    run = save_run("evaluate", "", [each.row() for each in results], collect_unit_rows(results), signed)
    material = attach_suites(load_report_data([run.id]), [suite])
    page = render_report(ReportHeading(text), material, [], build_browser(material))
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    told = json.loads(found[1])
    assert text in _strings(told), "the sentence does not stand in the report"
    return text


def through_scores(text: str, folder: Path) -> str:
    path = folder / "scores.csv"
    suite = Suite("one", (Sentence("a", "Cats."),))
    write_rows(path, [{"sentence_id": "a", "score": -1.0, "model": text}])
    return read_scores(path, suite)[0].model


def _strings(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for each in inner for text in _strings(each)}


MARKED_OR_NOTHING = re.compile(
    r"(?:[*✓✔]|\?\??)[*?]*\s?\w|%%?[^\W\d]"
    r"|(?:NA|N/A|NaN|nan|NULL|None|#N/A|#(?:NAME|REF|VALUE|NULL|DIV/0)[?!])\Z"
)


def is_refused_in_tables(text: str) -> bool:
    """A star before a word or a bracket, or after the sentence, is a mark, unless it emphasises a word."""
    starred = re.sub(r"(?<![\w*])\*\w[^*]*\*(?![\w*(])", "", text)
    is_marked_within = re.search(r"(?<![\w*])\*(?=[\w(])|(?<=[\w.!?…)\]\"”’])\s?\*$", starred)
    return bool(MARKED_OR_NOTHING.match(text) or is_marked_within)


WAYS = {
    "CSV": lambda text, folder: through_table(text, folder, ".csv"),
    "TSV": lambda text, folder: through_table(text, folder, ".tsv"),
    "rows of JSONL": lambda text, folder: through_table(text, folder, ".jsonl"),
    "a suite in JSONL": through_jsonl,
    "Parquet": through_parquet,
    "the store": through_the_store,
    "a saved run": through_a_run,
    "a report": through_a_report,
    "a file of scores": through_scores,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_sentence_comes_back_as_it_went_in(way: str, tmp_path: Path) -> None:
    def one(text: str) -> None:
        count.inputs += 1
        if way in ("CSV", "TSV") and is_refused_in_tables(text):
            # People put such into tables and mean no sentence by it; JSONL takes it.
            with pytest.raises(AcceptabilityError):
                WAYS[way](text, tmp_path)
        elif is_sentence(text):
            assert WAYS[way](text, tmp_path) == text
        else:
            with pytest.raises((AcceptabilityError, UnicodeEncodeError)):
                pair(text)

    with counted(f"there and back: {way}") as count:
        for text in KNOWN:
            one(text)
        _rounds(one, count)


def _rounds(one: Any, count: Any) -> None:
    many = settings(max_examples=100 if SECONDS_EACH else 20, database=None,
                    suppress_health_check=list(HealthCheck))(given(any_text)(one))  # fmt: skip
    number = 0
    while number == 0 or count.seconds < SECONDS_EACH / 3:
        seed(number)(many)()
        number += 1


def test_half_of_a_surrogate_pair_is_refused_wherever_a_suite_has_it() -> None:
    sentence = Sentence("a", "Cats.")
    for changed in ({"id": "\ud800"}, {"text": "\udfff"}, {"tags": {"x": "\ud800"}}, {"tags": {"\ud800": "x"}},
                    {"regions": {"\ud800": (0, 1)}}):  # fmt: skip
        with pytest.raises(SuiteError, match="half of a surrogate pair"):
            replace(sentence, **changed)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_newlines_and_a_mark_at_the_beginning_change_nothing(newline: str, mark: str, tmp_path: Path) -> None:
    for ending, lines in (("csv", ["text,label", "Cats.,1", "Cat.,0"]), ("tsv", ["text\tlabel", "Cats.\t1", "Cat.\t0"]),
                          ("jsonl", ['{"text":"Cats.","label":1}', '{"text":"Cat.","label":0}']),
                          ("txt", ["Cats.", "*Cat."])):  # fmt: skip
        path = tmp_path / f"a.{ending}"
        path.write_bytes((mark + newline.join(lines) + newline).encode())
        suite = load_suite(str(path))
        assert [(each.text, each.label) for each in suite.sentences] == [("Cats.", 1), ("Cat.", 0)]
