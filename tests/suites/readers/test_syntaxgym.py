"""SyntaxGym's suites: every formula reads, every region is where it should be, bad files are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.measures.predictions import iter_regions, parse_formula
from acceptability.suites import find_entries, load_suite
from acceptability.suites.readers.regions import find_circuit

MINE: dict[str, Any] = {
    "meta": {"name": "mine", "metric": "sum"},
    "region_meta": {"1": "subject", "2": "aside", "3": "verb"},
    "predictions": [
        {"type": "formula", "formula": "(3;%match%) < (3;%mismatch%)"},
        {"type": "formula", "formula": "(2;%match%) = (2;%mismatch%)"},
    ],
    "items": [
        {
            "item_number": 1,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [
                        {"region_number": 1, "content": "The cats "},
                        {"region_number": 2, "content": ""},
                        {"region_number": 3, "content": verb},
                        {"region_number": 4, "content": "."},
                    ],
                }
                for name, verb in (("match", "sleep"), ("mismatch", " sleeps"))
            ],
        }
    ],
}


def written(folder: Path, suite: Any) -> str:
    path = folder / "agreement.json"
    path.write_text(json.dumps(suite), encoding="utf-8")
    return str(path)


def changed(*path: str | int, to: Any) -> Any:
    suite = copy.deepcopy(MINE)
    node: Any = suite
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = to
    return suite


def test_every_formula_of_the_published_suites_reads_and_reads_back(data: Path) -> None:
    entries = find_entries("syntaxgym")
    assert len(entries) == 34
    formulas = 0
    for entry in entries:
        suite = load_suite(entry.id)
        texts = {
            value
            for sentence in suite.sentences
            for key, value in sentence.tags.items()
            if key.startswith("prediction")
        }
        for text in texts:
            formula = parse_formula(text)
            assert parse_formula(str(formula)) == formula
            assert {region.condition for region in iter_regions(formula)} <= {
                sentence.tags["condition"] for sentence in suite.sentences
            }
        formulas += len(texts)
    assert formulas == 36


def test_published_suites_are_in_the_circuits_of_the_paper(data: Path) -> None:
    suite = load_suite("syntaxgym")
    circuits = {sentence.tags.get("circuit") for sentence in suite.sentences}
    assert len(circuits - {None}) == 6
    assert {sentence.tags["suite"] for sentence in suite.sentences if "circuit" not in sentence.tags} == {
        "syntaxgym/nn-nv-rpl"
    }
    assert find_circuit("center_embed_mod") == "center embedding"


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, MINE))
    assert suite.name == "agreement"
    first = suite.by_id["mine/1/match"]
    assert first.text == "The cats sleep."
    assert {name: first.text[start:end] for name, (start, end) in first.regions.items()} == {
        "1": "The cats",
        "3": "sleep",
        "4": ".",
    }
    assert first.tags == {
        "item": "1",
        "set": "mine/1",
        "condition": "match",
        "prediction": "(3;%match%) < (3;%mismatch%)",
        "prediction_2": "(2;%match%) = (2;%mismatch%)",
        "empty_regions": "2",
    }


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ([], "SyntaxGym's form"),
        ({}, "'meta' is missing"),
        (changed("meta", "metric", to="mean"), "the metric is 'mean'"),
        (changed("predictions", to=[]), "no predictions"),
        (changed("predictions", 0, "formula", to="(3;%match%) <"), "at character 14"),
        (changed("predictions", 0, "formula", to="(3;%match%) < (3;%other%)"), "no condition 'other'; it has match"),
        (changed("predictions", 0, "formula", to="(9;%match%) < (3;%match%)"), "no such region"),
        (changed("predictions", 0, "formula", to=7), "SyntaxGym's form"),
        (changed("items", to=[]), "no sentences"),
        (changed("items", 0, "conditions", 1, "condition_name", to="match"), "no condition 'mismatch'"),
        (changed("items", 0, "conditions", 0, "regions", 3, "region_number", to=3), "region 3 is repeated"),
        (changed("items", 0, "conditions", 0, "regions", 2, "content", to=None), "SyntaxGym's form"),
    ],
)
def test_a_file_out_of_order_is_refused(tmp_path: Path, suite: Any, message: str) -> None:
    with pytest.raises(SuiteError, match="agreement") as caught:
        load_suite(written(tmp_path, suite))
    assert message in str(caught.value)


def test_a_file_that_is_not_json_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(SuiteError, match="not a file of JSON"):
        load_suite(str(path))
    path.write_bytes(b'{"meta": "\xff"}')
    with pytest.raises(SuiteError, match="not a file of JSON"):
        load_suite(str(path))
    with pytest.raises(SuiteError, match="cannot read"):
        load_suite(str(tmp_path / "none.json"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PATHS = [
    ("meta",),
    ("meta", "name"),
    ("predictions",),
    ("predictions", 0),
    ("predictions", 0, "formula"),
    ("items",),
    ("items", 0),
    ("items", 0, "item_number"),
    ("items", 0, "conditions"),
    ("items", 0, "conditions", 0),
    ("items", 0, "conditions", 0, "condition_name"),
    ("items", 0, "conditions", 0, "regions"),
    ("items", 0, "conditions", 0, "regions", 2),
    ("items", 0, "conditions", 0, "regions", 2, "region_number"),
    ("items", 0, "conditions", 0, "regions", 2, "content"),
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=st.sampled_from(PATHS), value=JSON)
def test_a_damaged_file_raises_only_our_errors(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    try:
        suite = load_suite(written(tmp_path, changed(*path, to=value)))
    except SuiteError:
        return
    assert suite.sentences
