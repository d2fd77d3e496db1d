"""Users' models and measures that do not inherit from the protocols: completed by what the protocols declare."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from acceptability.protocols import Measure, Model, complete_measure, complete_model


class Plain:
    signature = "plain"

    def encode(self, queries: Any) -> Any:
        return list(queries)

    def run(self, batch: Any) -> Any:
        return [len(query) for query in batch]


class Particular(Plain):
    budget = 7
    word_rule = "split"

    def as_lenient(self) -> Plain:
        return Plain()


class Mean:
    needs = "labels"
    mean_of = "score"

    def units(self, suite: Any, scores: Any) -> Any:
        return {}

    def value(self, units: Any) -> float:
        return float(np.mean(units["score"]))

    def __repr__(self) -> str:
        return "Mean()"


class Resolved(Mean):
    def resolve(self, scores: Any, by: str) -> Mean:
        return Mean()


def list_declared(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def test_every_optional_attribute_of_a_model_has_its_default() -> None:
    class Inheriting(Plain, Model):
        pass

    completed, inheriting = complete_model(Plain()), Inheriting()
    for name in set(list_declared(Model)) - {"signature", "encode", "run", "begin", "as_lenient", "as_predictor"}:
        assert getattr(completed, name) == getattr(inheriting, name), name
    assert completed.display_name == completed.signature == "plain"
    # Defaults that are methods call the object's own ones.
    assert completed.begin(["ab"])() == completed.run(["ab"]) == [2]
    assert completed.as_lenient() is completed
    assert completed.as_predictor(5) is inheriting.as_predictor(5) is None


def test_what_a_model_has_itself_is_kept() -> None:
    completed = complete_model(Particular())
    assert (completed.budget, completed.word_rule, completed.packing) == (7, "split", "size")
    assert type(completed.as_lenient()) is Plain
    assert complete_model(completed) is completed
    assert copy.deepcopy(completed).budget == 7


def test_what_a_model_has_to_have_has_no_default() -> None:
    with pytest.raises(AttributeError, match="signature"):
        _ = complete_model(object()).signature


def test_measures_are_completed_too() -> None:
    completed = complete_measure(Mean())
    for name in set(list_declared(Measure)) - {"needs", "units", "value", "resolve", "weigh", "mean_of"}:
        assert getattr(completed, name) == getattr(type("Inheriting", (Mean, Measure), {})(), name), name
    assert (repr(completed), completed) == ("Mean()", complete_measure(completed))
    moments = completed.weigh({"score": np.array([1.0, 2.0])})
    assert moments.of_rows.tolist() == [[1, 2], [1, 1]]
    assert completed.resolve([], "") is completed
    assert complete_measure(Resolved()).resolve([], "").needs_tags == ()
    with pytest.raises(AttributeError, match="value"):
        _ = complete_measure(object()).value
