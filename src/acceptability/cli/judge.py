"""``acceptability judge``: type a sentence or several, and see how a model scores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from acceptability.api.scoring import Judgement, find_best_judgement, find_deciding_words, judge, sign_judgements
from acceptability.cli.console import DtypeOption, JsonOption, print_json, print_line, print_message, show_progress
from acceptability.models import default_model, list_named_models, set_spec_dtype
from acceptability.types import TokenScores

_UNKNOWN_MARK = "*"


def command(
    sentences: Annotated[list[str], typer.Argument(help="One sentence, or several to compare.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="A model: KIND:PATH(option=value), or a name. Default: the best installed one."
        ),
    ] = None,
    reduce: Annotated[
        str | None,
        typer.Option("--reduce", "-r", help="The reduction. Default: lp, or log_odds for a classifier."),
    ] = None,
    dtype: DtypeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score sentences, show the surprisal of each token, and report which sentence is better."""
    name = model or default_model()
    # The default depends on what is installed, so that the reader must see which model it was.
    if model is None:
        print_message(f"model: {name}, {list_named_models()[name].about}")
    name = set_spec_dtype(name, dtype) if dtype else name
    with show_progress() as progress:
        judgements = judge(sentences, name, reduce, progress=progress)
    signature = sign_judgements(sentences, name, reduce)
    if as_json:
        print_json(
            {
                "model": name,
                "sentences": [judgement.row() for judgement in judgements],
                "better": find_best_judgement(judgements),
                "decided_by_unknown_words": find_deciding_words(judgements),
                "signature": signature,
            }
        )
    else:
        _print_judgements(judgements)
        print_message(signature)


def _print_judgements(judgements: Sequence[Judgement]) -> None:
    for judgement in judgements:
        print_line(f"{judgement.score:10.4f}  {judgement.text}")
        if isinstance(judgement.output, TokenScores):
            unknown = judgement.output.unknown or ()
            tokens = (
                f"{token}{_UNKNOWN_MARK if position in unknown else ''} {bits:.1f}"
                for position, (token, bits) in enumerate(judgement.token_surprisals())
            )
            # Twelve spaces: the tokens stand below the sentence, after the column of scores.
            print_line(" " * 12 + "  ".join(tokens))
    if len(judgements) > 1:
        best = find_best_judgement(judgements)
        first, second = sorted((judgement.score for judgement in judgements), reverse=True)[:2]
        print_line("a tie" if best is None else f"better by {first - second:.4f}: {judgements[best].text}")
        if deciding := find_deciding_words(judgements):
            print_line(
                f"The comparison depends on what words get that the model does not know: {', '.join(deciding)} "
                "(its option unknown)."
            )
    if any(isinstance(judgement.output, TokenScores) for judgement in judgements):
        print_message("below each sentence: the surprisal of its tokens, in bits")
    if any(judgement.unknown_words for judgement in judgements):
        print_message(f"{_UNKNOWN_MARK} not in the model's vocabulary")
