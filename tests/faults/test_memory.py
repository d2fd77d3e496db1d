"""A device that runs out of memory: batches are halved, and the scores stay the same."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acceptability import Sentence, Suite, load_model, score
from acceptability.errors import ModelError
from faults.harness import Tally
from tiny import SENTENCES, TEXTS

Rounds = Callable[[int, int], int]


def suite() -> Suite:
    texts = dict.fromkeys([*TEXTS, *(f"{one} {two}" for one in SENTENCES for two in SENTENCES)])
    return Suite("memory", tuple(Sentence(str(index), text) for index, text in enumerate(texts)))


def limited(model: Any, most: int, row: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a network run out of memory for batches of more sentences, or masked copies, than that, as CUDA does."""
    import torch

    forward, kind = model.forward, type(model.forward)

    class Limited(kind):  # type: ignore[misc, valid-type]
        def __call__(self, rows: Any, *others: Any) -> Any:
            if len(rows.input_ids if hasattr(rows, "input_ids") else rows.tokens) > most:
                row.injected += 1
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return forward(rows, *others)

    small = object.__new__(Limited)
    small.__dict__.update(vars(forward))
    # Models are opened once and kept, so the next test would meet this one.
    monkeypatch.setitem(model.__dict__, "forward", small)
    return model


@pytest.mark.parametrize(("kind", "most"), [("causal", 1), ("causal", 3), ("masked", 18), ("masked", 20)])
def test_batches_are_halved(
    kind: str, most: int, causal_dir: Path, masked_dir: Path, monkeypatch, tmp_path: Path, tally: Tally, caplog
) -> None:
    spec = f"{kind}:{causal_dir if kind == 'causal' else masked_dir}"
    row, calm = tally.row("CUDA out of memory, simulated"), score(suite(), spec)
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "other"))
    before = row.injected
    with caplog.at_level(logging.WARNING):
        scores = score(suite(), limited(load_model(spec), most, row, monkeypatch))
    assert row.injected > before, "the memory was never too small"
    row.wrong += sum(scores[name] != pytest.approx(calm[name], abs=1e-4) for name in calm.values)
    row.lost += len(calm.values) - len(scores.values)
    assert (row.lost, row.wrong) == (0, 0)
    (warning,) = [message for message in caplog.messages if "smaller batches" in message]
    assert "does not fit into memory" in warning


def test_a_sentence_that_does_not_fit_alone_is_named(causal_dir: Path, monkeypatch, tally: Tally) -> None:
    row = tally.row("CUDA out of memory, simulated")
    with pytest.raises(
        ModelError, match=r"cannot score sentence '\d+' \('.*'\): it does not fit into memory even alone"
    ):
        score(suite(), limited(load_model(f"causal:{causal_dir}"), 0, row, monkeypatch))
