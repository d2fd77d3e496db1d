"""``acceptability judge``: type a sentence, or two, and see what a model makes of it."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from acceptability.cli.shown import Dtype, Json, print_json, progress_bar, say, talk
from acceptability.models import default_model, delivered, in_precision
from acceptability.scoring import Judgement, judge
from acceptability.types import TokenScores


def command(
    sentences: Annotated[list[str], typer.Argument(help="One sentence, or several to compare.")],
    model: Annotated[str | None, typer.Option("--model", "-m", help="Default: the best that is installed.")] = None,
    reduce: Annotated[str | None, typer.Option("--reduce", "-r", help="A reduction; default lp or log_odds.")] = None,
    dtype: Dtype = None,
    as_json: Json = False,
) -> None:
    """Score sentences, show the surprisal of each token, and say which sentence is better."""
    name = model or default_model()
    if model is None:
        talk(f"model: {name}, {delivered()[name].about}")
    name = in_precision(name, dtype) if dtype else name
    with progress_bar() as progress:
        found = judge(sentences, name, reduce, progress=progress)
    if as_json:
        print_json({"model": name, "sentences": [_row(each) for each in found], "better": _better(found)})
        return
    for each in found:
        say(f"{each.score:10.4f}  {each.text}")
        if isinstance(each.said, TokenScores):
            say(" " * 12 + "  ".join(f"{token} {bits:.1f}" for token, bits in _surprisals(each.said)))
    if len(found) > 1:
        better = _better(found)
        first, second = sorted((each.score for each in found), reverse=True)[:2]
        say("a tie" if better is None else f"better by {first - second:.4f}: {found[better].text}")
    if any(isinstance(each.said, TokenScores) for each in found):
        talk("below each sentence: the surprisal of its tokens, in bits")


def _surprisals(said: TokenScores) -> list[tuple[str, float]]:
    """Return each token as it stands in the text, with its surprisal in bits."""
    return [
        (said.text[start:end].strip() or token, -float(logprob) / math.log(2))
        for token, (start, end), logprob in zip(said.tokens, said.offsets, said.logprobs.tolist(), strict=True)
    ]


def _row(each: Judgement) -> dict[str, object]:
    row: dict[str, object] = {"text": each.text, "score": each.score}
    if isinstance(each.said, TokenScores):
        pairs = _surprisals(each.said)
        return row | {"tokens": [{"token": token, "surprisal_bits": bits} for token, bits in pairs]}
    return row | {"logits": list(each.said.logits)}


def _better(found: list[Judgement]) -> int | None:
    """Return which sentence is better than all others, counted from 0; None for a tie or a single one."""
    best = max(each.score for each in found)
    places = [place for place, each in enumerate(found) if each.score == best]
    return places[0] if len(found) > 1 and len(places) == 1 else None
