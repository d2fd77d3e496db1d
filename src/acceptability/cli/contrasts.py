"""``acceptability contrasts``: how surprising the differing words of contrasts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from acceptability import __version__
from acceptability.cli.shown import (
    Address,
    By,
    Dtype,
    EngineName,
    Json,
    Marks,
    Resamples,
    Seed,
    SuiteColumns,
    arguments,
    bootstrap,
    chosen_engine,
    loaded_suite,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.contrasts import Group, TargetContrasts, groups, target_contrasts
from acceptability.errors import SpellingError
from acceptability.measures.interaction import CLASSES, GRADES, Cutoffs
from acceptability.measuring import left_out
from acceptability.models import in_precision
from acceptability.report.table import number
from acceptability.signature import sign
from acceptability.store.runs import save_run
from acceptability.suites.targets import SIDES, counted


def command(
    suite: str,
    model: Annotated[str, typer.Option("--model", "-m", help="A language model: KIND:PLACE(option=value), or a name.")],
    by: By = None,
    side: Annotated[
        str,
        typer.Option("--side", help="What an insertion or deletion masks: the shared word left, right, or bracket."),
    ] = "left",
    multi_token: Annotated[
        bool, typer.Option("--multi-token", help="Keep targets of several tokens: masked together, and summed.")
    ] = False,
    cutoffs: Annotated[
        str, typer.Option("--cutoffs", help="High and low accuracy, then high and low repulsion.")
    ] = "0.8,0.35,0.7,0.4",
    dtype: Dtype = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    engine: EngineName = "local",
    address: Address = None,
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Ask a model about the words in which the sentences of contrasts differ: directionality and repulsion."""
    at, how, runner = _cutoffs(cutoffs), bootstrap(resamples, "", seed), chosen_engine(engine, address)
    if side not in SIDES:
        raise SpellingError(f"--side {side}: expected one of {', '.join(SIDES)}")
    if side == "bracket" and not multi_token:
        raise SpellingError("--side bracket masks several words, so also several tokens: add --multi-token")
    loaded = loaded_suite(suite, columns, marks)
    with progress_bar() as progress:
        found = target_contrasts(
            loaded,
            in_precision(model, dtype) if dtype else model,
            side=side,
            multi_token=multi_token,
            by=by,
            engine=runner,
            progress=progress,
        )
    kinds = groups(found, "edit", cutoffs=at, bootstrap=how)
    named = groups(found, by, cutoffs=at, bootstrap=how)[1:] if by else []
    fields = {"suite": found.suite.signature, "model": found.scores.signature, "multi_token": str(multi_token)}
    signature = sign("contrasts", fields | {"cutoffs": cutoffs, "ci": how.signature, "acceptability": __version__})
    outside = left_out(sum(by not in each.tags for each in found.suite.contrasts) if by else 0, by or "")
    if as_json:
        print_json(_data(found, [*kinds, *named], outside, signature))
    else:
        _show(found, kinds, named)
        for line in (*outside, signature):
            talk(line)
    saved(
        save_run("contrasts", arguments(), [each.row() for each in (*kinds, *named)], list(found.rows()), [signature])
    )


def _cutoffs(text: str) -> Cutoffs:
    try:
        high, low, repulsion_high, repulsion_low = map(float, text.split(","))
    except ValueError as error:
        raise SpellingError(f"--cutoffs {text!r}: expected four numbers, as 0.8,0.35,0.7,0.4") from error
    return Cutoffs(high, low, repulsion_high, repulsion_low)


def _data(
    found: TargetContrasts, parts: Sequence[Group], outside: Sequence[str], signature: str
) -> Mapping[str, object]:
    return {
        "model": found.scores.model,
        "suite": found.suite.name,
        "groups": [each.row() for each in parts],
        "contrasts": list(found.rows()),
        "exclusions": [{"contrast": each.contrast, "reason": each.reason} for each in found.exclusions],
        "notes": [*found.notes(), *outside],
        "signature": signature,
    }


def _show(found: TargetContrasts, kinds: Sequence[Group], named: Sequence[Group]) -> None:
    """Print the kinds of edits, the groups, what accuracy and repulsion say together, and what was left out."""
    header = ["group", "n", "directionality", "repulsion", "better (bits)", "worse (bits)", "class"]
    print_rows(header, [_row(each) for each in (*kinds, *named)])
    print_rows(["accuracy", *(f"repulsion {each}" for each in GRADES)], _grid(named or kinds[1:]))
    reasons = counted(found.exclusions)
    if reasons:
        examples = {each.reason: each.contrast for each in reversed(found.exclusions)}
        rows = [{"left out": why, "contrasts": n, "the first": examples[why]} for why, n in reasons.items()]
        print_rows(["left out", "contrasts", "the first"], rows)
    for note in found.notes()[len(reasons) :]:
        talk(note)


def _row(each: Group) -> Mapping[str, object]:
    return {
        "group": each.name,
        "n": each.directionality.n,
        "directionality": _with_interval(each.directionality.value, each.directionality.low, each.directionality.high),
        "repulsion": _with_interval(each.repulsion.value, each.repulsion.low, each.repulsion.high),
        "better (bits)": f"{each.better_surprisal_bits:.2f}",
        "worse (bits)": f"{each.worse_surprisal_bits:.2f}",
        "class": each.verdict,
    }


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    return number(value) if low is None or high is None else f"{number(value)} [{low:.2f}, {high:.2f}]"


def _grid(parts: Sequence[Group]) -> list[Mapping[str, object]]:
    """Return the table of accuracy by repulsion: each class, and how many groups are in it."""
    verdicts = [each.verdict for each in parts]

    def cell(accuracy: str, repulsion: str) -> str:
        name = CLASSES[accuracy, repulsion]
        return f"{name}: {verdicts.count(name)}"

    return [
        {"accuracy": accuracy} | {f"repulsion {grade}": cell(accuracy, grade) for grade in GRADES}
        for accuracy in GRADES
    ]
