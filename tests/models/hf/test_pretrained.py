"""Real pretrained models that PyPI delivers."""

from __future__ import annotations

import pytest

from acceptability import evaluate, judge, load_suite
from acceptability.models import list_named_models
from acceptability.types import Suite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not list_named_models()["smollm2-135m"].is_installed(), reason="smollm2-135m is not installed"),
]


def test_smollm2_knows_agreement() -> None:
    good, bad = judge(["The keys to the cabinet are here.", "The keys to the cabinet is here."], model="smollm2-135m")
    assert good.score > bad.score + 1


def test_smollm2_on_the_starter_suite() -> None:
    (result,) = evaluate("starter", ["smollm2-135m"], measure=["PairAccuracy"])
    assert result.value > 0.9


def test_smollm2_on_a_sample_of_blimp(data) -> None:
    """A sample of 1,340 pairs gave 79 % after <|endoftext|>; the sample must come near it."""
    blimp = load_suite("blimp")
    contrasts = blimp.contrasts[::50]
    ids = {sentence_id for contrast in contrasts for sentence_id in (contrast.better, contrast.worse)}
    sample = Suite("blimp-sample", tuple(sentence for sentence in blimp.sentences if sentence.id in ids), contrasts)
    (result,) = evaluate(sample, ["smollm2-135m"], measure=["PairAccuracy"])
    assert result.n == 1340
    assert result.value == pytest.approx(0.792, abs=0.03)
