"""Time a decoder of eight billion parameters on one GPU, beside lm-evaluation-harness and minicons, in one run.

    python -m bench.large --scratch SCRATCH

The network has the shape of Llama 3 8B, 128,256 subwords among it, in bfloat16 with random weights, which are made on
the GPU and never saved. All tools get this one network and GPT-2's tokenizer. In interleaved rounds, ours scores all of
BLiMP, and the other tools random pairs of it, with the best of some batch sizes. Times include tokenisation, and
exclude the loading of the network.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from acceptability import load_suite
from acceptability.engine import local
from acceptability.models.hf import in_memory
from acceptability.types import Query
from bench.contenders import ROOT
from bench.sentences import pairs
from bench.shapes import make_shape
from bench.tables import aligned

_BATCHES = (64, 256, 512)
_TRIAL = 1_024
_SHAPE: dict[str, Any] = {
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rope_theta": 500_000.0,
    "tie_word_embeddings": False,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Time every tool, print a table, and write the results to a file."""
    given = _reader().parse_args(arguments)
    suite = load_suite("blimp")
    drawn = pairs(suite, given.part, 0)
    network, tokenizer = _make_network(given)
    tools = {"ours": _prepare_ours(network, tokenizer)}
    tools |= {name: maker(network, tokenizer, given.device) for name, maker in _PEERS.items() if name in given.peers}
    texts = dict.fromkeys(tools, drawn) | {"ours": [each.text for each in suite.sentences][: given.sentences]}
    batches = {name: _choose_batch(run, drawn) if name != "ours" else 0 for name, run in tools.items()}
    rates: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(given.rounds):
        for name, run in tools.items():
            seconds = _time(lambda run=run, name=name: run(texts[name], batches[name]))  # type: ignore[misc]
            rates[name].append(len(texts[name]) / seconds)
    medians = {name: statistics.median(own) for name, own in rates.items()}
    rows = [
        (
            name,
            f"{len(texts[name]):,}",
            str(batches[name] or "own"),
            f"{medians[name]:,.0f}",
            _show_ratio(medians, name),
        )
        for name in tools
    ]
    print(aligned([("tool", "sentences", "batch", "sentences/s", "ours, times as fast"), *rows]))
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / "large.json"
    path.write_text(
        json.dumps(
            {"rates": rates, "batches": batches, "counts": {name: len(own) for name, own in texts.items()}}, indent=1
        ),
        encoding="utf-8",
    )
    print(f"written: {path}", file=sys.stderr)


def _show_ratio(medians: dict[str, float], name: str) -> str:
    return "" if name == "ours" else f"{medians['ours'] / medians[name]:.2f}"


def _make_network(given: argparse.Namespace) -> tuple[Any, Any]:
    """Return the network and the tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(make_shape(given.scratch, "gpt2").folder)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = LlamaConfig(**_SHAPE | {"num_hidden_layers": given.layers}, **ends)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(given.device):
            network = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
    return network, tokenizer


def _prepare_ours(network: Any, tokenizer: Any) -> Callable[[Sequence[str], int], object]:
    # The hash of sixteen gigabytes on a GPU takes longer than scoring, and these weights are never stored.
    with mock.patch.object(in_memory, "hash_network", return_value="0" * 12):
        model: Any = in_memory.from_transformers(network, tokenizer, name="large")
        _ = model.forward

    def run(texts: Sequence[str], _: int) -> int:
        return sum(len(batch) for batch in local.run_queries(model, [Query(text) for text in texts], lambda _: False))

    return run


def _prepare_harness(network: Any, tokenizer: Any, device: str) -> Callable[[Sequence[str], int], object]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model: Any = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=1, device=device)

    def run(texts: Sequence[str], batch: int) -> object:
        model.batch_size_per_gpu = batch
        requests = [
            Instance(request_type="loglikelihood", doc={}, arguments=("", " " + text), idx=index)
            for index, text in enumerate(texts)
        ]
        return model.loglikelihood(requests, disable_tqdm=True)

    return run


def _prepare_minicons(network: Any, tokenizer: Any, device: str) -> Callable[[Sequence[str], int], object]:
    from minicons import scorer

    model: Any = scorer.IncrementalLMScorer(network, device=device, tokenizer=tokenizer)

    def run(texts: Sequence[str], batch: int) -> object:
        starts = range(0, len(texts), batch)
        return [
            model.sequence_score(list(texts[start : start + batch]), reduction=lambda x: x.sum().item())
            for start in starts
        ]

    return run


_PEERS = {"lm-eval": _prepare_harness, "minicons": _prepare_minicons}


def _choose_batch(run: Callable[[Sequence[str], int], object], texts: Sequence[str]) -> int:
    """Return the batch size with which a tool is fastest on some sentences."""
    run(texts[:_TRIAL], _BATCHES[0])
    seconds = {batch: _time(lambda batch=batch: run(texts[:_TRIAL], batch)) for batch in _BATCHES}  # type: ignore[misc]
    return min(seconds, key=lambda batch: seconds[batch])


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.large", description="Time a large decoder on one GPU.")
    reader.add_argument("--device", default="cuda")
    reader.add_argument("--layers", type=int, default=_SHAPE["num_hidden_layers"])
    reader.add_argument("--sentences", type=int, default=134_000, help="how many ours scores in a round")
    reader.add_argument("--part", type=int, default=4_000, help="how many each of the other tools scores in a round")
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--peers", nargs="*", choices=("lm-eval", "minicons"), default=["lm-eval", "minicons"])
    reader.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "acceptability-bench")
    reader.add_argument("--output", type=Path, default=ROOT / "bench" / "out")
    return reader


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
