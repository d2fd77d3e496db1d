"""Train a transformer on a machine that has a GPU but neither the corpus nor a network: prepare, train, finish.

On any machine, once for a corpus (tokens as compressed arrays, in parts that are easy to carry)::

    python -m bench.pretrain prepare --corpus FOLDER --dev FOLDER --out PREPARED

On the machine with the GPU (``--set`` as for ``acceptability train``; a run that was stopped goes on)::

    python -m bench.pretrain train gpt --prepared PREPARED --out OUT --set minutes=5 --set dtype=float16

Back where the corpus is, with card, recipe and unigrams as ``acceptability train`` writes them::

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
from acceptability.train import Job, Tick, train
from acceptability.train.card import card
from acceptability.train.checkpoint import Checkpoints
from acceptability.train.corpus import Corpus, Counts, counts, open_corpus
from acceptability.train.options import read_options
from acceptability.train.recipe import FILE, Trained, machine, versions
from acceptability.train.subwords import Pieces, encode, learn_subwords

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}]  # tokens of two bytes
_PART = 15 << 20


def prepare(corpus: Sequence[str], dev: Sequence[str], out: Path, vocabulary: int, parts: int) -> None:
    """Write a corpus in numbers, with its tokenizer and what is known of it."""
    out.mkdir(parents=True, exist_ok=True)
    text = open_corpus(corpus)
    tokenizer = learn_subwords(text, vocabulary)
    tokenizer.save(str(out / "tokenizer.json"))
    known = counts(text)
    (out / "corpus.json").write_text(json.dumps(vars(known) | {"files": [path.name for path in text.files]}))
    for number, part in enumerate(np.array_split(encode(tokenizer, text).ids, parts)):
        compress(part, out / f"tokens-{number}.npy.xz")
    if dev:
        compress(encode(tokenizer, open_corpus(dev)).ids, out / "dev.npy.xz")


def compress(ids: NDArray[Any], path: Path) -> None:
    """Write an array, small."""
    with lzma.open(path, "wb", format=lzma.FORMAT_XZ, filters=_FILTERS) as out:
        np.save(out, ids)
    print(f"{path}: {len(ids):,} tokens, {path.stat().st_size / 2**20:.1f} MiB")


def prepared(folder: Path) -> tuple[Pieces, Pieces | None]:
    """Return a corpus and a dev set in numbers."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    parts = sorted(folder.glob("tokens-*.npy.xz"))
    if not parts:
        raise SystemExit(f"{folder} has no tokens-*.npy.xz")
    ids = np.concatenate([_array(path) for path in parts])
    held = folder / "dev.npy.xz"
    return Pieces(tokenizer, ids), Pieces(tokenizer, _array(held)) if held.exists() else None


def _array(path: Path) -> NDArray[Any]:
    with lzma.open(path) as opened:
        return cast(NDArray[Any], np.load(opened))


def teach(kind: str, options: Sequence[str], folder: Path, out: Path, work: Path) -> None:
    """Train on what was prepared; write the model in parts that are small enough to be carried back."""
    from acceptability.train.teaching import taught
    from acceptability.train.team import Team

    began = time.monotonic()
    recipe: Any = read_options(registry.find("recipe", kind), options)
    pieces, dev = prepared(folder)
    known = json.loads((folder / "corpus.json").read_text())
    print(f"{len(pieces.ids):,} tokens read in {time.monotonic() - began:.0f} s", flush=True)
    counted = Counts(known["sha256"], known["sentences"], known["words"])
    about = {"kind": kind, "recipe": vars(recipe), "corpus": counted.sha256}
    job = Job(Corpus(()), counted, work / "model", None, Checkpoints(work / "checkpoint", about), _Shown())
    job.out.mkdir(parents=True, exist_ok=True)
    trained = taught(recipe, pieces, dev, job, Team())
    told: dict[str, Any] = {
        "kind": kind,
        "options": list(options),
        "facts": dict(trained.facts),
        "unigrams": dict(trained.unigrams),
    }
    told |= {"seconds": round(time.monotonic() - began, 1), "machine": machine(), "versions": versions()}
    (job.out / "trained.json").write_text(json.dumps(told, ensure_ascii=False))
    _carry(job.out, out, kind)
    facts = trained.facts
    pace = cast(int, facts["tokens seen"]) / cast(float, facts["seconds of training"])
    print(json.dumps(facts, indent=1), f"\n{pace:,.0f} tokens/s; {time.monotonic() - began:.0f} s in all", flush=True)


def _carry(model: Path, out: Path, kind: str) -> None:
    """Write a model's folder as one archive, in parts."""
    out.mkdir(parents=True, exist_ok=True)
    with BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for path in sorted(model.iterdir()):
                archive.add(path, path.name)
        content = whole.getvalue()
    for number, first in enumerate(range(0, len(content), _PART)):
        (out / f"{kind}.tar.{number}").write_bytes(content[first : first + _PART])


def _unpacked(kind: str, carried: Path, out: Path) -> None:
    parts = sorted(carried.glob(f"{kind}.tar.*"), key=lambda path: int(path.suffix.removeprefix(".")))
    if not parts:
        raise SystemExit(f"{carried} has no {kind}.tar.*")
    with tarfile.open(fileobj=BytesIO(b"".join(path.read_bytes() for path in parts))) as archive:
        archive.extractall(out, filter="data")


class _Shown:
    """Prints what a run tells, a few times a minute."""

    def __init__(self) -> None:
        self.last = (time.monotonic(), 0)

    def __call__(self, tick: Tick) -> None:
        now, (then, tokens) = time.monotonic(), self.last
        if tick.stage == "training" and now - then < 10:
            return
        loss = "" if tick.loss is None else f", loss {tick.loss:.4f}"
        pace = f", {(tick.tokens - tokens) / (now - then):,.0f} tokens/s" if tick.stage == "training" else ""
        print(f"{tick.stage} {tick.done}/{tick.total}: {tick.tokens:,} tokens{loss}{pace}", flush=True)
        if tick.stage == "training":
            self.last = (now, tick.tokens)


def finish(kind: str, carried: Path, corpus: Sequence[str], dev: Sequence[str], model: Path, licence: str) -> None:
    """Write the model's folder as ``acceptability train`` does, with weights that were trained elsewhere."""
    with TemporaryDirectory() as folder:
        _unpacked(kind, carried, Path(folder))
        told = json.loads((Path(folder) / "trained.json").read_text())
        known = registry.find("recipe", kind)
        # A recipe with the same options, which takes the weights that are there instead of training.
        ready = make_dataclass(f"Ready{known.__name__}", [], bases=(known,), frozen=True)

        def follow(_: object, job: Job) -> Trained:
            job.out.mkdir(parents=True, exist_ok=True)
            for path in Path(folder).iterdir():
                if path.name != "trained.json":
                    shutil.copyfile(path, job.out / path.name)
            return Trained(told["unigrams"], told["facts"])

        ready.follow = follow  # type: ignore[attr-defined]
        recipe = read_options(cast(Any, ready), told["options"])
        written = train(recipe, corpus, model, dev=dev, licence=licence)
        written |= {key: told[key] for key in ("seconds", "machine", "versions")}
        (model / FILE).write_text(json.dumps(written, indent=1, ensure_ascii=False), encoding="utf-8")
        (model / "README.md").write_text(card(model.name, known.opened_as, written), encoding="utf-8")


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
    for each in (second, third):
        each.add_argument("kind", choices=("gpt", "bert"))
    for each in (first, third):
        each.add_argument("--corpus", action="append", required=True)
        each.add_argument("--dev", action="append", default=[])
    third.add_argument("carried", type=Path)
    for each in (first, second):
        each.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "prepare":
        prepare(args.corpus, args.dev, args.out, args.vocabulary, args.parts)
    elif args.command == "train":
        teach(args.kind, args.set, args.prepared, args.out, args.work)
    else:
        finish(args.kind, args.carried, args.corpus, args.dev, args.model, args.licence)


if __name__ == "__main__":
    main()
