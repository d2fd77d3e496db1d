"""``acceptability judge``: type a sentence or several, and see how a model scores them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.scoring import Judgement, find_best_judgement, find_deciding_words, judge, sign_judgements
from acceptability.cli.console import (
    DEFAULT_READING,
    Display,
    DtypeOption,
    JsonOption,
    SuiteReading,
    describe_signatures,
    load_cli_suite,
    print_json,
    print_line,
    print_message,
    print_notes,
    print_signatures,
    show_progress,
    with_display,
    with_reading_options,
)
from acceptability.errors import SpecError, shorten
from acceptability.models import default_model, list_named_models, set_spec_dtype
from acceptability.models.kinds import complete_model_spec
from acceptability.report.display_names import NumberFormat
from acceptability.specs import shorten_signature
from acceptability.suites import find_source_kind
from acceptability.suites.brackets import begins_with_mark
from acceptability.text.io import decode_utf8, read_content
from acceptability.types import TokenScores

_UNKNOWN_MARK = "*"
_STANDARD_INPUT = "-"


@with_display
@with_reading_options(without=("unit", "marks", "pair_by"))
def command(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(
            help="One sentence, or several to rank. Without any, or with -, they are read from standard input, one a "
            "line."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A model: a name, a folder, an id on the Hugging Face Hub, or KIND:PATH(option=value). Default: "
            "mini-causal, or trigram without PyTorch.",
        ),
    ] = None,
    reduce: Annotated[
        str | None,
        typer.Option("--reduce", "-r", help="The reduction. Default: lp, or log_odds for a classifier."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Read the sentences from this file: one a line, or those of a table."),
    ] = None,
    context: Annotated[
        str, typer.Option("--context", help="A text before each sentence, which the model reads and does not score.")
    ] = "",
    dtype: DtypeOption = None,
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Score sentences, show the surprisal of each token, and rank them."""
    texts = _read_sentences(sentences or [], file, reading)
    name = complete_model_spec(model) if model else default_model()
    # Which model it is depends on what is installed.
    if model is None:
        print_message(f"model: {name}, {list_named_models()[name].about}")
    name = set_spec_dtype(name, dtype) if dtype else name
    with show_progress() as progress:
        judgements = judge(texts, model=name, reduce=reduce, context=context, progress=progress)
    signature = sign_judgements(texts, name, reduce, context)
    ranking = sorted(range(len(judgements)), key=lambda index: -judgements[index].score)
    if as_json:
        print_json(
            {
                "model": name,
                **({"context": context} if context else {}),
                "sentences": [judgement.row() for judgement in judgements],
                "better": find_best_judgement(judgements),
                "ranking": ranking,
                "decided_by_unknown_words": find_deciding_words(judgements),
                "signature": signature,
            }
        )
        return
    # Two are compared as they were typed; more are ranked, which is what one looks for.
    order = ranking if len(judgements) > 2 else range(len(judgements))
    _print_judgements([judgements[index] for index in order], NumberFormat(display.style.digits))
    print_signatures([signature], display)
    if not display.signatures:
        print_message(describe_signatures([shorten_signature(signature)], is_saved=False))


def _read_sentences(sentences: Sequence[str], file: Path | None, reading: SuiteReading) -> list[str]:
    """Return the sentences to judge: those of the arguments, of a file, or of standard input."""
    if reading.table.describe() and not (file and _is_table(file)):
        raise SpecError(f"--{next(iter(reading.table.describe()))} is for a table: name one by --file")
    if file:
        if sentences:
            raise SpecError(f"sentences stand in --file {file} and in the arguments: choose one")
        # A line of a table is no sentence.
        if _is_table(file):
            return list(load_cli_suite(str(file), reading).texts)
        text = decode_utf8(read_content(file), str(file))
    elif list(sentences) == [_STANDARD_INPUT] or not sentences:
        # A program that waits for typing in silence looks as if it hung.
        if sys.stdin.isatty():
            print_message("type sentences, one a line, then Ctrl-D")
        text = sys.stdin.read()
    else:
        return list(sentences)
    # Windows' lines end in two characters; empty lines separate groups.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise SpecError(
            f'{file or "standard input"} has no sentences. Type them as arguments: acceptability judge "A sentence."'
        )
    if file and (marked := next((line for line in lines if begins_with_mark(line)), None)):
        raise SpecError(
            f"{file}: {shorten(marked)!r} begins with a mark, which would be scored as a part of the sentence. "
            f"Remove the marks, or read them as labels: acceptability evaluate {file}, or load_suite"
        )
    return lines


def _is_table(file: Path) -> bool:
    return find_source_kind(str(file)) == "table"


def _print_judgements(judgements: Sequence[Judgement], style: NumberFormat) -> None:
    scores = [style.number(judgement.score) for judgement in judgements]
    width = max(map(len, scores))
    for score, judgement in zip(scores, judgements, strict=True):
        print_line(f"{score:>{width}}  {judgement.text}")
        if isinstance(judgement.output, TokenScores):
            unknown = judgement.output.unknown or ()
            tokens = (
                f"{token}{_UNKNOWN_MARK if position in unknown else ''} {bits:.1f}"
                for position, (token, bits) in enumerate(judgement.token_surprisals())
            )
            # The tokens stand below the sentence, after the column of scores.
            print_line(" " * (width + 2) + "  ".join(tokens))
    if len(judgements) > 1:
        best = find_best_judgement(judgements)
        first, second = sorted((judgement.score for judgement in judgements), reverse=True)[:2]
        rank = "best" if len(judgements) > 2 else "better"
        print_line("a tie" if best is None else f"{rank} by {style.number(first - second)}: {judgements[best].text}")
        if deciding := find_deciding_words(judgements):
            print_line(
                f"The comparison depends on what words get that the model does not know: {', '.join(deciding)} "
                "(its option unknown)."
            )
    if any(isinstance(judgement.output, TokenScores) for judgement in judgements):
        print_notes(["below each sentence: the surprisal of its tokens, in bits"])
    if any(judgement.unknown_words for judgement in judgements):
        print_notes([f"{_UNKNOWN_MARK} not in the model's vocabulary"])
