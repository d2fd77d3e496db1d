"""What holds for every kind of model that needs no download."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability import load_model, registry
from acceptability.models.named import delivered
from acceptability.protocols import Model
from acceptability.reductions import LP, LogOdds
from acceptability.types import LabelScores, Query
from tiny import TEXTS

KINDS = ["uniform", "ngram", "aggregate-markov", "recurrent", "causal", "masked", "seq2seq", "classifier", "remote"]
KINDS += ["asking"]
METHODS = ["yes_no", "in_template_lp"]


@pytest.fixture(params=[*KINDS[:-1], *METHODS, *(name for name in delivered() if name.endswith("trigram"))])
def model(request) -> Model:
    if request.param in METHODS:
        folder, wordings = request.getfixturevalue("causal_dir"), request.getfixturevalue("wordings")
        options = f"method={request.param!r}, template='all', templates={str(wordings)!r}"
        return load_model(f"asking:causal:{folder}({options})")
    if request.param == "uniform":
        return load_model("uniform")
    if request.param == "remote":
        return load_model(f"remote:{request.getfixturevalue('toy_server').url}#toy")
    if request.param in delivered():
        if not delivered()[request.param].is_installed():
            pytest.skip(f"{request.param} is not installed")
        return load_model(request.param)
    fixture = "arpa" if request.param == "ngram" else f"{request.param.replace('-', '_')}_dir"
    return load_model(f"{request.param}:{request.getfixturevalue(fixture)}")


def numbers(model: Model, texts: list[str]) -> list[float]:
    said = model.run(model.encode([Query(text) for text in texts]))
    return [(LogOdds() if isinstance(each, LabelScores) else LP())(each) for each in said]


def test_every_registered_kind_is_tested_here() -> None:
    assert set(registry.names("model")) == set(KINDS)


def test_order_is_kept_scores_are_finite_and_repeatable(model: Model) -> None:
    forward = numbers(model, TEXTS)
    assert np.isfinite(forward).all()
    assert numbers(model, TEXTS[::-1])[::-1] == pytest.approx(forward, abs=1e-4)
    assert numbers(model, TEXTS) == forward


def test_batching_changes_nothing(model: Model) -> None:
    """Padding must not leak into a score."""
    alone = [numbers(model, [text])[0] for text in TEXTS]
    assert numbers(model, TEXTS) == pytest.approx(alone, abs=1e-4)


def test_the_signature_is_one_line_and_repeatable(model: Model) -> None:
    assert model.signature == model.signature
    assert "\n" not in model.signature


def test_language_models_say_where_their_tokens_stand(model: Model) -> None:
    for each in model.run(model.encode([Query(text) for text in TEXTS])):
        if isinstance(each, LabelScores):
            continue
        spans = [span for span in each.offsets if span[0] < span[1]]
        assert spans == sorted(spans)
        assert all(0 <= start <= end <= len(each.text) for start, end in each.offsets)
        assert (each.logprobs <= 1e-6).all()
