"""Contracts of every kind of model that needs no download."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability import load_model, registry
from acceptability.models import list_named_models
from acceptability.protocols import Model
from acceptability.reductions import LP, LogOdds
from acceptability.types import LabelScores, Query
from tiny import TEXTS

KINDS = ["uniform", "ngram", "aggregate-markov", "recurrent", "causal", "masked", "seq2seq", "classifier", "remote"]
KINDS += ["prompted"]
METHODS = ["yes_no", "in_template_lp"]


@pytest.fixture(params=[*KINDS[:-1], *METHODS, *(name for name in list_named_models() if name.endswith("trigram"))])
def model(request) -> Model:
    if request.param in METHODS:
        folder, wordings = request.getfixturevalue("causal_dir"), request.getfixturevalue("wordings")
        options = f"method={request.param!r}, template='all', templates={str(wordings)!r}"
        return load_model(f"prompted:causal:{folder}({options})")
    if request.param == "uniform":
        return load_model("uniform")
    if request.param == "remote":
        return load_model(f"remote:{request.getfixturevalue('toy_server').url}#toy")
    if request.param in list_named_models():
        if not list_named_models()[request.param].is_installed():
            pytest.skip(f"{request.param} is not installed")
        return load_model(request.param)
    fixture = "arpa" if request.param == "ngram" else f"{request.param.replace('-', '_')}_dir"
    return load_model(f"{request.param}:{request.getfixturevalue(fixture)}")


def reduce_texts(model: Model, texts: list[str]) -> list[float]:
    outputs = model.run(model.encode([Query(text) for text in texts]))
    return [(LogOdds() if isinstance(output, LabelScores) else LP())(output) for output in outputs]


def test_every_registered_kind_is_tested_here() -> None:
    assert set(registry.names("model")) == set(KINDS)


def test_scores_are_finite_repeatable_and_in_order(model: Model) -> None:
    forward = reduce_texts(model, TEXTS)
    assert np.isfinite(forward).all()
    assert reduce_texts(model, TEXTS[::-1])[::-1] == pytest.approx(forward, abs=1e-4)
    assert reduce_texts(model, TEXTS) == forward


def test_batching_changes_nothing(model: Model) -> None:
    """Padding must not leak into a score."""
    alone = [reduce_texts(model, [text])[0] for text in TEXTS]
    assert reduce_texts(model, TEXTS) == pytest.approx(alone, abs=1e-4)


def test_the_signature_is_one_line_and_repeatable(model: Model) -> None:
    assert model.signature == model.signature
    assert "\n" not in model.signature


def test_tokens_of_language_models_have_ordered_offsets(model: Model) -> None:
    for output in model.run(model.encode([Query(text) for text in TEXTS])):
        if isinstance(output, LabelScores):
            continue
        spans = [span for span in output.offsets if span[0] < span[1]]
        assert spans == sorted(spans)
        assert all(0 <= start <= end <= len(output.text) for start, end in output.offsets)
        assert (output.logprobs <= 1e-6).all()
