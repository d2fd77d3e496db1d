"""Train a transformer on a machine that has a GPU but neither the corpus nor a network: prepare, train, finish.

On any machine, once per corpus (tokens as compressed arrays, in parts that are easy to copy)::

    python -m bench.pretrain prepare --corpus FOLDER --dev FOLDER --out PREPARED

On the machine with the GPU (``--set`` as for ``acceptability train``; an interrupted run resumes)::

    python -m bench.pretrain train gpt --prepared PREPARED --out OUT --set minutes=5 --set dtype=float16

Back on the machine with the corpus, with model card, recipe and unigrams as ``acceptability train`` writes them::

    python -m bench.pretrain finish gpt OUT --corpus FOLDER --dev FOLDER --model FOLDER --licence TEXT
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import tarfile
import time
from collections.abc import Sequence
from dataclasses import make_dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from acceptability import registry
from acceptability.train import TrainingJob, TrainingProgress, train
from acceptability.train.checkpoint import CheckpointManager
from acceptability.train.corpus import Corpus, CorpusCounts, count_corpus, open_corpus
from acceptability.train.recipe import (
    RECIPE_FILE,
    RecipeOutput,
    collect_versions,
    describe_machine,
    format_model_card,
    read_options,
)
from acceptability.train.transformer_recipes import TokenizedCorpus, tokenize_corpus, train_tokenizer

_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}
]  # lp and pb of 1: token ids have two bytes
_PART = 15 << 20


def prepare(corpus: Sequence[str], dev: Sequence[str], out: Path, vocabulary: int, parts: int) -> None:
    """Write a corpus as token ids, with its tokenizer and its counts."""
    out.mkdir(parents=True, exist_ok=True)
    text = open_corpus(corpus)
    tokenizer = train_tokenizer(text, vocabulary)
    tokenizer.save(str(out / "tokenizer.json"))
    counts = count_corpus(text)
    (out / "corpus.json").write_text(json.dumps(vars(counts) | {"files": [path.name for path in text.files]}))
    for number, part in enumerate(np.array_split(tokenize_corpus(tokenizer, text).ids, parts)):
        compress(part, out / f"tokens-{number}.npy.xz")
    if dev:
        compress(tokenize_corpus(tokenizer, open_corpus(dev)).ids, out / "dev.npy.xz")


def compress(ids: NDArray[Any], path: Path) -> None:
    """Write an array, compressed."""
    with lzma.open(path, "wb", format=lzma.FORMAT_XZ, filters=_FILTERS) as out:
        np.save(out, ids)
    print(f"{path}: {len(ids):,} tokens, {path.stat().st_size / 2**20:.1f} MiB")


def read_prepared(folder: Path) -> tuple[TokenizedCorpus, TokenizedCorpus | None]:
    """Return a corpus and a dev set as token ids."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    parts = sorted(folder.glob("tokens-*.npy.xz"))
    if not parts:
        raise SystemExit(f"{folder} has no tokens-*.npy.xz")
    ids = np.concatenate([_array(path) for path in parts])
    held = folder / "dev.npy.xz"
    return TokenizedCorpus(tokenizer, ids), TokenizedCorpus(tokenizer, _array(held)) if held.exists() else None


def _array(path: Path) -> NDArray[Any]:
    with lzma.open(path) as opened:
        return cast(NDArray[Any], np.load(opened))


def train_prepared(kind: str, options: Sequence[str], folder: Path, out: Path, work: Path) -> None:
    """Train on a prepared corpus; write the model in parts that are small enough to copy."""
    from acceptability.train.trainer import ProcessGroup
    from acceptability.train.transformer_task import train_transformer

    start = time.monotonic()
    recipe: Any = read_options(registry.find("recipe", kind), options)
    tokens, dev = read_prepared(folder)
    known = json.loads((folder / "corpus.json").read_text())
    print(f"{len(tokens.ids):,} tokens read in {time.monotonic() - start:.0f} s", flush=True)
    counted = CorpusCounts(known["sha256"], known["sentences"], known["words"])
    about = {"kind": kind, "recipe": vars(recipe), "corpus": counted.sha256}
    job = TrainingJob(
        Corpus(()),
        counted,
        work / "model",
        None,
        checkpoints=CheckpointManager(work / "checkpoint", about),
        report_progress=_ProgressPrinter(),
    )
    job.out.mkdir(parents=True, exist_ok=True)
    trained = train_transformer(recipe, tokens, dev, job, ProcessGroup())
    trained_info: dict[str, Any] = {
        "kind": kind,
        "options": list(options),
        "facts": dict(trained.facts),
        "unigrams": dict(trained.unigrams),
    }
    trained_info |= {
        "seconds": round(time.monotonic() - start, 1),
        "machine": describe_machine(),
        "versions": collect_versions(),
    }
    (job.out / "trained.json").write_text(json.dumps(trained_info, ensure_ascii=False))
    _write_parts(job.out, out, kind)
    facts = trained.facts
    pace = cast(int, facts["tokens seen"]) / cast(float, facts["seconds of training"])
    print(json.dumps(facts, indent=1), f"\n{pace:,.0f} tokens/s; {time.monotonic() - start:.0f} s in all", flush=True)


def _write_parts(model: Path, out: Path, kind: str) -> None:
    """Write the folder of a model as one archive, in parts."""
    out.mkdir(parents=True, exist_ok=True)
    with BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for path in sorted(model.iterdir()):
                archive.add(path, path.name)
        content = whole.getvalue()
    for number, first in enumerate(range(0, len(content), _PART)):
        (out / f"{kind}.tar.{number}").write_bytes(content[first : first + _PART])


def _unpack_parts(kind: str, parts_folder: Path, out: Path) -> None:
    parts = sorted(parts_folder.glob(f"{kind}.tar.*"), key=lambda path: int(path.suffix.removeprefix(".")))
    if not parts:
        raise SystemExit(f"{parts_folder} has no {kind}.tar.*")
    with tarfile.open(fileobj=BytesIO(b"".join(path.read_bytes() for path in parts))) as archive:
        archive.extractall(out, filter="data")


class _ProgressPrinter:
    """Prints the progress of a run, a few times a minute."""

    def __init__(self) -> None:
        self.last = (time.monotonic(), 0)

    def __call__(self, progress: TrainingProgress) -> None:
        now, (then, tokens) = time.monotonic(), self.last
        if progress.stage == "training" and now - then < 10:
            return
        loss = "" if progress.loss is None else f", loss {progress.loss:.4f}"
        pace = f", {(progress.tokens - tokens) / (now - then):,.0f} tokens/s" if progress.stage == "training" else ""
        print(f"{progress.stage} {progress.done}/{progress.total}: {progress.tokens:,} tokens{loss}{pace}", flush=True)
        if progress.stage == "training":
            self.last = (now, progress.tokens)


def finish(kind: str, parts_folder: Path, corpus: Sequence[str], dev: Sequence[str], model: Path, licence: str) -> None:
    """Write the folder of a model as ``acceptability train`` does, with weights that were trained elsewhere."""
    with TemporaryDirectory() as folder:
        _unpack_parts(kind, parts_folder, Path(folder))
        trained_info = json.loads((Path(folder) / "trained.json").read_text())
        recipe_class = registry.find("recipe", kind)
        # A recipe with the same options, which copies the trained weights instead of training.
        ready = make_dataclass(f"Ready{recipe_class.__name__}", [], bases=(recipe_class,), frozen=True)

        def follow(_: object, job: TrainingJob) -> RecipeOutput:
            job.out.mkdir(parents=True, exist_ok=True)
            for path in Path(folder).iterdir():
                if path.name != "trained.json":
                    shutil.copyfile(path, job.out / path.name)
            return RecipeOutput(trained_info["unigrams"], trained_info["facts"])

        ready.follow = follow  # type: ignore[attr-defined]
        recipe = read_options(cast(Any, ready), trained_info["options"])
        written = train(recipe, corpus, model, dev=dev, licence=licence)
        written |= {key: trained_info[key] for key in ("seconds", "machine", "versions")}
        (model / RECIPE_FILE).write_text(json.dumps(written, indent=1, ensure_ascii=False), encoding="utf-8")
        (model / "README.md").write_text(
            format_model_card(model.name, recipe_class.opened_as, written), encoding="utf-8"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    first = commands.add_parser("prepare")
    first.add_argument("--vocabulary", type=int, default=12_288)
    first.add_argument("--parts", type=int, default=2)
    second = commands.add_parser("train")
    second.add_argument("--prepared", type=Path, required=True)
    second.add_argument("--set", action="append", default=[])
    second.add_argument("--work", type=Path, default=Path("pretrain-work"), help="for checkpoints")
    third = commands.add_parser("finish")
    third.add_argument("--model", type=Path, required=True)
    third.add_argument("--licence", default="")
    for subparser in (second, third):
        subparser.add_argument("kind", choices=("gpt", "bert"))
    for subparser in (first, third):
        subparser.add_argument("--corpus", action="append", required=True)
        subparser.add_argument("--dev", action="append", default=[])
    third.add_argument("parts_folder", type=Path)
    for subparser in (first, second):
        subparser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "prepare":
        prepare(args.corpus, args.dev, args.out, args.vocabulary, args.parts)
    elif args.command == "train":
        train_prepared(args.kind, args.set, args.prepared, args.out, args.work)
    else:
        finish(args.kind, args.parts_folder, args.corpus, args.dev, args.model, args.licence)


if __name__ == "__main__":
    main()
