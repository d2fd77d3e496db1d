"""Teaching a classifier from beginning to end: what a recipe is given, what it leaves in the folder.

A recipe is a frozen dataclass with ``reads = "labels"``; ``fit`` puts the weights into the folder. Beside them lie
``recipe.json``, written last, with what repeats the run, and ``README.md``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from acceptability import __version__
from acceptability.train.checkpoint import atomic
from acceptability.train.classifiers.examples import Examples, held_out, read_examples
from acceptability.train.recipe import FILE, finished, machine, versions
from acceptability.train.tick import Tell
from acceptability.types import Suite


@dataclass(frozen=True)
class Fitted:
    """What a recipe has made.

    Args:
        facts: What is worth knowing of the run: sizes, losses, when it stopped.
        held: What the classifier reaches on the sentences that were held out: ``mcc`` and ``accuracy``.
    """

    facts: Mapping[str, object]
    held: Mapping[str, float]


class Course(Protocol):
    """A way to teach a classifier."""

    kind: ClassVar[str]
    reads: ClassVar[str]

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        """Learn from some sentences until others, held out, are judged no better; put the weights into a folder."""
        ...


def teach(
    recipe: Course, data: Sequence[str | Suite], out: str | Path, *, licence: str = "", tell: Tell = lambda _: None
) -> dict[str, Any]:
    """Teach a classifier and return what its ``recipe.json`` says; one that lies there already is not taught again.

    Args:
        data: Suites or tables of labelled sentences, all learnt from together, less the tenth that is held out.
    """
    folder, examples = Path(out), read_examples(data)
    about = _about(recipe, examples)
    if (there := finished(folder, about)) is not None:
        return there
    began = time.monotonic()
    learn, held = held_out(examples)
    folder.mkdir(parents=True, exist_ok=True)
    fitted = recipe.fit(learn, held, folder, tell)
    told = {
        **about,
        "sentences": len(learn),
        "held out": len(held),
        "acceptable": round(sum(examples.labels) / len(examples), 4),
        "licence": licence,
        "versions": versions(),
        "seconds": round(time.monotonic() - began, 1),
        "machine": machine(),
        "facts": dict(fitted.facts),
        "results": {"held out": dict(fitted.held)},
    }
    with atomic(folder / "README.md") as page:
        page.write(_card(folder.resolve().name, told).encode())
    with atomic(folder / FILE) as page:
        page.write(json.dumps(told, indent=1, ensure_ascii=False).encode())
    return told


def _about(recipe: Course, examples: Examples) -> dict[str, Any]:
    """Return what makes two runs the same."""
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(recipe).items()}  # type: ignore[call-overload]
    return {"kind": recipe.kind, "recipe": options, "data": examples.hash, "acceptability": __version__}


def _card(name: str, told: Mapping[str, Any]) -> str:
    rows = {
        **told["recipe"],
        **told["facts"],
        **{f"held out, {key}": each for key, each in told["results"]["held out"].items()},
    }
    return (
        "\n\n".join(
            (
                f"# {name}",
                f"A classifier of acceptability of the kind `{told['kind']}`, taught with acceptability "
                f"{told['acceptability']}. Use it as `classifier:FOLDER`, where FOLDER is this folder.",
                f"Learnt from {told['sentences']:,} sentences; {told['held out']:,} were held out to stop by. "
                f"{told['seconds']:,} seconds on {told['machine']}.",
                told["licence"] or "Nothing was said of the rights in the sentences.",
                "\n".join(f"- {key}: {value}" for key, value in rows.items()),
            )
        )
        + "\n"
    )
