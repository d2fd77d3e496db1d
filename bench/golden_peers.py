"""Write tests/golden/peers.json: the scores of other tools for a few sentences, so that tests do not need the tools.

    python -m bench.golden_peers --environment FOLDER

The models are the tiny ones of the tests (``tests/tiny.py``). This process makes them, and the environment of the other
tools loads them. Each sentence has the tool's score, and its tokens with their log-probabilities; minicons lists a
token that it does not score with 0. The mean size of the weights is stored too, so that a test can distinguish a
change of the models from a change of the scores.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.contenders import ROOT, environment
from bench.peers import python_of_peers
from bench.serving import Order

TARGET = ROOT / "tests" / "golden" / "peers.json"
_CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "minicons causal": ("minicons", "causal", {}),
    "minicons causal, bos_token=True": ("minicons", "causal", {"bos": True}),
    "minicons PLL original": ("minicons", "masked", {"metric": "original"}),
    "minicons PLL within_word_l2r": ("minicons", "masked", {"metric": "within_word_l2r"}),
    "lm-eval loglikelihood": ("lm-eval", "causal", {}),
}


def main() -> None:
    """Make the models, score with the other tools in their environment, and write the scores."""
    reader = argparse.ArgumentParser(
        prog="python -m bench.golden_peers", description="Store the scores of other tools."
    )
    reader.add_argument("--environment", help="the folder of an environment that has the peers, or 'here'")
    reader.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "acceptability-bench")
    reader.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = reader.parse_args()
    if given.inside:
        print(json.dumps(_score_texts(given.inside), ensure_ascii=False))
        return
    with tempfile.TemporaryDirectory() as models_folder:
        _make(Path(models_folder))
        python = python_of_peers(given.environment, given.scratch)
        command = [str(python), "-m", "bench.golden_peers", "--inside", models_folder]
        settings = environment(ours=False) | {"HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=settings)
        cases = json.loads(done.stdout.splitlines()[-1])
    TARGET.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {TARGET}", file=sys.stderr)


def _make(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    tiny = importlib.import_module("tiny")
    tiny.make_causal(folder / "causal")
    tiny.make_masked(folder / "masked")
    (folder / "texts.json").write_text(json.dumps(tiny.TEXTS), encoding="utf-8")


def _score_texts(folder: Path) -> dict[str, Any]:
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    return {
        "versions": {name: version(name) for name in ("minicons", "lm_eval", "torch", "transformers")},
        "weights": {kind: _mean_size(folder / kind) for kind in ("causal", "masked")},
        "cases": {name: _score_case(folder, texts, *case) for name, case in _CASES.items()},
    }


def _score_case(folder: Path, texts: list[str], tool: str, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    from bench.worker_lm_eval import Harness
    from bench.worker_minicons import Minicons

    order = Order(str(folder / kind), "float32", "cpu", 1, options)
    scorer = Minicons(order) if tool == "minicons" else Harness(order)
    scores, tokens = scorer.scores(texts, 1), scorer.tokens(texts)
    return {
        "model": kind,
        "sentences": [
            {
                "text": text,
                "score": round(score, 5),
                "tokens": [token for token, _ in sentence_tokens],
                "logprobs": [round(value, 5) for _, value in sentence_tokens],
            }
            for text, score, sentence_tokens in zip(texts, scores, tokens, strict=True)
        ],
    }


def _mean_size(folder: Path) -> float:
    """Return the mean absolute value of all weights."""
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors").values()
    return round(
        float(sum(tensor.double().abs().sum() for tensor in weights)) / sum(tensor.numel() for tensor in weights), 6
    )


if __name__ == "__main__":
    main()
