"""The page that goes with a model: what it was trained on and how, what it may be used for, what it reaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def card(name: str, opened_as: str, told: Mapping[str, Any]) -> str:
    """Return a model's README, from what is known of its training."""
    files = told["files"]
    shown = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    what = "classifier" if opened_as == "classifier" else "language model"
    parts = [
        f"# {name}",
        f"A {what} of the kind `{told['kind']}`, trained with acceptability {told['acceptability']}. "
        f"Use it as `{opened_as}:FOLDER`, where FOLDER is this folder.",
        "## Data",
        f"{told['sentences']:,} sentences, {told['words']:,} words (as spaces separate them) from {shown}; "
        f"sha256 of the text `{told['corpus']}`.",
        "## Licence",
        told["licence"] or "Nothing was said of the rights in the text that it was trained on.",
        "## Recipe",
        _listed(told["recipe"] | ({"seed": told["seed"]} if told["seed"] is not None else {})),
        "## Cost",
        f"{told['seconds']:,} seconds on {told['machine']}.",
        "## What came out",
        _listed(told["facts"]),
        "## Results",
        _listed(told["results"].get("dev", {})) or "No text was held out to measure it on.",
        "## SLOR",
        "`unigrams.tsv` counts the model's own units in the training text: `slor(unigrams='FOLDER/unigrams.tsv')`.",
    ]
    return "\n\n".join(parts) + "\n"


def _listed(facts: Mapping[str, Any]) -> str:
    return "\n".join(f"- {name}: {_said(value)}" for name, value in facts.items())


def _said(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_said(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value) or "none"
