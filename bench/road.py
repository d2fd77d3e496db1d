"""Time the stages from a suite to a result, and our scoring against a plain transformers loop.

    make bench

The models have random weights (GPT-2 and BERT shapes, four layers of 256), so nothing is downloaded. Rounds are
interleaved, since timings are noisy; compare ratios within one run, not times between runs.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROUNDS = 3
SENTENCES = 100


def main() -> None:
    """Run all stages in several rounds, and print medians and ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["ACCEPTABILITY_HOME"] = str(Path(scratch) / "home")
        os.environ.setdefault("TQDM_DISABLE", "1")
        stages = _stages(Path(scratch))
        seconds: dict[str, list[float]] = {name: [] for name in stages}
        for _ in range(ROUNDS):
            for name, stage in stages.items():
                start = time.perf_counter()
                stage()
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    table = Table(
        "stage", "median seconds", "minimum", "maximum", title=f"{platform.platform()}, {os.cpu_count()} cores"
    )
    for name, times in seconds.items():
        table.add_row(name, f"{medians[name]:.3f}", f"{min(times):.3f}", f"{max(times):.3f}")
    console = Console(width=120)
    console.print(table)
    for ours, plain in (("causal: ours", "causal: plain loop"), ("PLL: ours", "PLL: plain loop")):
        console.print(
            f"{ours.partition(':')[0]}: ours is {medians[plain] / medians[ours]:.1f} times as fast as a plain loop"
        )


def _stages(scratch: Path) -> dict[str, Callable[[], object]]:
    from acceptability import evaluate, load_model, load_suite
    from acceptability.engine.local import run_queries
    from acceptability.stats.bootstrap import Bootstrap
    from acceptability.types import Query

    suite = load_suite("starter")
    texts = [sentence.text for sentence in suite.sentences][:SENTENCES]
    causal, masked = _make_models(scratch)
    ours = {name: load_model(name) for name in (f"causal:{causal}", f"masked:{masked}")}

    def run(name: str) -> int:
        return sum(len(batch) for batch in run_queries(ours[name], [Query(text) for text in texts], lambda _: False))

    def stored() -> object:
        return evaluate(suite, ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))

    stored()
    loops = _make_plain_loops(causal, masked, texts)
    return {
        "load the starter suite": lambda: load_suite("starter"),
        "evaluate from the store": stored,
        "1,000 resamples": lambda: evaluate(suite, ["uniform"], measure=["PairAccuracy"]),
        "causal: ours": lambda: run(f"causal:{causal}"),
        "causal: plain loop": loops[0],
        "PLL: ours": lambda: run(f"masked:{masked}"),
        "PLL: plain loop": loops[1],
    }


def _make_models(scratch: Path) -> tuple[Path, Path]:
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    from acceptability import load_suite

    words = [sentence.text for sentence in load_suite("starter").sentences]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(words, trainers.WordPieceTrainer(vocab_size=2000, special_tokens=special))
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    plain: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="[CLS]", **names)
    torch.manual_seed(0)
    causal, masked = scratch / "causal", scratch / "masked"
    GPT2LMHeadModel(
        GPT2Config(vocab_size=30_000, n_embd=256, n_layer=4, n_head=4, bos_token_id=2, eos_token_id=3)
    ).save_pretrained(causal)
    plain.save_pretrained(causal)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    framed: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    config = BertConfig(
        vocab_size=30_000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    BertForMaskedLM(config).save_pretrained(masked)
    framed.save_pretrained(masked)
    return causal, masked


def _make_plain_loops(causal: Path, masked: Path, texts: list[str]) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return the loops that a user would write with transformers alone: one text, or one mask, at a time."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    tokenizer, framed = AutoTokenizer.from_pretrained(causal), AutoTokenizer.from_pretrained(masked)
    decoder = AutoModelForCausalLM.from_pretrained(causal).eval()
    encoder = AutoModelForMaskedLM.from_pretrained(masked).eval()

    @torch.inference_mode()
    def score_causal() -> float:
        total = 0.0
        for text in texts:
            ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]])
            table = decoder(ids).logits[0, :-1].log_softmax(-1)
            total += float(table.gather(1, ids[0, 1:, None]).sum())
        return total

    @torch.inference_mode()
    def score_masked() -> float:
        total = 0.0
        for text in texts:
            ids = torch.tensor([framed(text)["input_ids"]])
            for position in range(1, ids.shape[1] - 1):
                masked_ids = ids.clone()
                masked_ids[0, position] = framed.mask_token_id
                total += float(encoder(masked_ids).logits[0, position].log_softmax(-1)[ids[0, position]])
        return total

    return score_causal, score_masked


if __name__ == "__main__":
    main()
