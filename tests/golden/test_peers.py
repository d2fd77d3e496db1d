"""Our scores beside what minicons and lm-evaluation-harness outputs of the same sentences (bench/golden_peers.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import load_model
from acceptability.engine.local import run_queries
from acceptability.types import Query

STORED: dict[str, Any] = json.loads(Path(__file__).with_name("peers.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-3
"""Nats for a sentence: float32 sums in another order."""

SAME = [
    ("minicons causal", "causal:{}(preset='minicons')", ""),
    ("minicons causal, bos_token=True", "causal:{}", ""),
    ("minicons PLL original", "masked:{}(preset='minicons')", ""),
    ("minicons PLL within_word_l2r", "masked:{}(variant='word_l2r', preset='minicons')", ""),
    ("lm-eval loglikelihood", "causal:{}(preset='lm-eval')", ""),
]


@pytest.fixture
def folders(causal_dir: Path, masked_dir: Path) -> dict[str, Path]:
    return {"causal": causal_dir, "masked": masked_dir}


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_the_tiny_models_are_those_that_the_peers_scored_with(folders: dict[str, Path], kind: str) -> None:
    from safetensors.numpy import load_file

    weights = load_file(folders[kind] / "model.safetensors").values()
    mean_weight = sum(np.abs(array, dtype=np.float64).sum() for array in weights) / sum(array.size for array in weights)
    assert mean_weight == pytest.approx(STORED["weights"][kind], abs=2e-6), "regenerate tests/golden/peers.json"


def test_every_stored_case_is_compared() -> None:
    assert [name for name, _, _ in SAME] == list(STORED["cases"])


@pytest.mark.parametrize(("name", "spec", "lead"), SAME, ids=[name for name, _, _ in SAME])
def test_scores_equal_those_of_the_peers(folders: dict[str, Path], name: str, spec: str, lead: str) -> None:
    stored = STORED["cases"][name]
    model = load_model(spec.format(folders[stored["model"]]))
    queries = [Query(lead + sentence["text"]) for sentence in stored["sentences"]]
    outputs = dict(pair for batch in run_queries(model, queries, lambda _: False) for pair in batch)
    for index, sentence in enumerate(stored["sentences"]):
        logprobs = outputs[index].logprobs
        # minicons lists a first token that it does not score with 0.
        assert logprobs == pytest.approx(sentence["logprobs"][-len(logprobs) :], abs=TOLERANCE)
        assert set(sentence["logprobs"][: -len(logprobs)]) <= {0.0}
        assert float(logprobs.sum()) == pytest.approx(sentence["score"], abs=TOLERANCE)
