"""``acceptability study``: a paper's tables computed again, or a study that a short TOML file describes.

``acceptability study adc`` puts our numbers beside those that the paper prints. A study of one's own:

    title = "Two models on two suites"
    suites = ["starter", "mine.csv"]
    models = ["uniform", "sphinx-trigram"]
    reductions = ["lp"]
    measures = ["PairAccuracy"]
    by = "phenomenon"
    resamples = 1000
    seed = 0

Only ``suites`` and ``models`` are needed; ``region``, ``resample_by`` and ``interval`` may be given too. A suite
in a file is looked for beside the study first.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acceptability import registry
from acceptability.cli.evaluate import show
from acceptability.cli.report import check_report, report_run
from acceptability.cli.shown import (
    Json,
    arguments,
    bootstrap,
    print_json,
    print_table,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import SpellingError, UnknownName, shorten, suggestion
from acceptability.home import home
from acceptability.measuring import evaluate_all
from acceptability.models import load_model
from acceptability.report.cells import agreement, cell_table
from acceptability.report.rows import check_rows_file, write_sheet
from acceptability.store.runs import save_run, unit_rows
from acceptability.studies import study
from acceptability.studies.cells import Cell
from acceptability.suites import load_suite
from acceptability.train.tick import Tick

if TYPE_CHECKING:
    from acceptability.studies.cola_plan import Size

_LISTS = ("suites", "models", "reductions", "measures")
_TEXTS = ("title", "by", "region", "resample_by", "interval")
_NUMBERS = ("resamples", "seed")


def command(
    name: Annotated[str, typer.Argument(help="A paper, such as adc, or a TOML file: suites, models, measures, ...")],
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model of yours, under the paper's protocol.")
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            "--corpus",
            "-c",
            help="Text to measure your models on, for a paper that does: file, folder, .conllu; repeatable.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="Only this table or figure of a paper, such as 'Table 1'.")
    ] = None,
    restarts: Annotated[
        list[Path] | None,
        typer.Option("--restarts", help="A folder of classifiers taught from several seeds, for a paper; repeatable."),
    ] = None,
    suite_i: Annotated[
        Path | None, typer.Option("--suite-i", help="For park: a file of pairs in the place of its first suite.")
    ] = None,
    train: Annotated[
        bool,
        typer.Option("--train", help="For cola and npi: teach the classifiers first, into --out; goes on if stopped."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="As --train, few, small and short, for two cores; needs nothing else."),
    ] = False,
    short: Annotated[
        bool,
        typer.Option("--short", help="For cola: as --train, five restarts of each kind, for half an hour of a GPU."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="With --train: the folder of the classifiers.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="With --train: how many classifiers are taught at once.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="With --train: where they are taught: local, ray(...).")
    ] = "local",
    dev: Annotated[
        list[Path] | None, typer.Option("--dev", help="With --train: other text like --corpus, to stop encoders by.")
    ] = None,
    vectors: Annotated[str, typer.Option("--vectors", help="With --train: a file of word vectors, as GloVe's.")] = "",
    restarts_each: Annotated[
        int | None,
        typer.Option("--restarts-each", help="For npi, with --train: seeds of each classifier; 1 if not said."),
    ] = None,
    intermediate: Annotated[
        list[str] | None,
        typer.Option(
            "--intermediate", help="For npi, with --train: a file that encoders learn from first; repeatable."
        ),
    ] = None,
    suite: Annotated[
        str, typer.Option("--suite", help="For npi: a file of sentences in place of the published ones.")
    ] = "",
    ratings: Annotated[
        Path | None, typer.Option("--ratings", help="For npi: people's answers from 1 to 6, a table.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a paper's cells too: .csv, .tsv or .jsonl.")] = None,
    page: Annotated[
        Path | None, typer.Option("--report", "--page", help="Write a report too: one HTML file that opens offline.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a paper's tables again, or run the study that a TOML file describes."""
    check_report(page)
    if csv:
        check_rows_file(csv)
    if name in registry.names("study") and not Path(name).is_file():
        models, given = model or [], _Given(corpus or [], restarts or [], suite_i, suite, ratings)
        more = _More(restarts_each, intermediate or [])
        if train or quick or short:
            size: Size = "quick" if quick else "short" if short else "full"
            plan = _Plan(size, out, corpus or [], dev or [], vectors, workers, engine, more)
            models, given = _taught(name, plan, models, given)
        elif out or dev or vectors or workers or engine != "local" or more != _More():
            options = "--out, --dev, --vectors, --workers, --engine, --restarts-each and --intermediate"
            raise SpellingError(f"{options} go with --train")
        _paper(name, models, given, table, csv, as_json, page)
    elif model:
        raise SpellingError(f"--model joins a paper's study; the models of {name} stand in the file")
    elif any((table, csv, corpus, restarts, train, quick, short, out, dev, vectors, workers, engine != "local")) or any(
        (suite_i, suite, ratings, restarts_each, intermediate)
    ):
        options = "--table, --csv, --corpus, --restarts, --suite-i, --suite, --ratings, --train and what goes with it"
        raise SpellingError(f"{options} are for a paper's study, and {name} is none")
    elif not Path(name).suffix:
        registry.find("study", name)
    else:
        _described(Path(name), page, as_json)


@dataclass(frozen=True)
class _Given:
    """What a paper's study is given beside models."""

    corpus: list[Path]
    restarts: list[Path]
    suite_i: Path | None = None
    suite: str = ""
    ratings: Path | None = None


@dataclass(frozen=True)
class _More:
    """What else the classifiers of the study npi are taught with."""

    restarts: int | None = None
    intermediate: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Plan:
    """What classifiers are taught with."""

    size: Size
    out: Path | None
    corpus: list[Path]
    dev: list[Path]
    vectors: str
    workers: int | None
    engine: str
    more: _More


def _taught(name: str, plan: _Plan, models: list[str], given: _Given) -> tuple[list[str], _Given]:
    """Teach the classifiers of a paper, say what was left out, and return the models and folders to show."""
    if name == "npi":
        return _taught_npi(plan, models, given)
    if name != "cola":
        raise SpellingError(f"--train teaches the classifiers of the studies cola and npi; {name} has none")
    if plan.more != _More() or given.suite:
        raise SpellingError("--restarts-each, --intermediate and --suite are for the study npi")
    from acceptability.studies.cola_asking import ask_together
    from acceptability.studies.cola_groups import groups
    from acceptability.studies.cola_train import CLASSIFIERS, carry_out, spelled_out, word_models

    plan, models = _complete(plan, models)
    assert plan.out is not None
    with progress_bar() as progress:

        def tell(tick: Tick) -> None:
            progress(tick.stage, tick.done, tick.total or tick.done)

        how: dict[str, Any] = {"vectors": plan.vectors, "workers": plan.workers, "engine": plan.engine, "tell": tell}
        left = carry_out(plan.size, plan.out, models, corpus=plan.corpus, dev=plan.dev, **how)
        ask_together(groups([plan.out / CLASSIFIERS]), workers=plan.workers or 1, tell=tell)
    for each in left:
        talk(f"not taught: {each}")
    words = word_models(plan.out) if plan.corpus else []
    lms = [each for each in models if spelled_out(each).startswith(("recurrent:", "ngram:"))]
    # Perplexities are measured on text that nothing was taught with.
    return [*words, *lms], replace(given, corpus=plan.dev, restarts=[*given.restarts, plan.out / CLASSIFIERS])


def _taught_npi(plan: _Plan, models: list[str], given: _Given) -> tuple[list[str], _Given]:
    """Teach the classifiers of the study npi, and return the models and folders to show."""
    from acceptability.studies.npi_plan import QUICK_MODELS
    from acceptability.studies.npi_train import carry_out

    if plan.corpus or plan.dev:
        raise SpellingError("--corpus and --dev are for the study cola: classifiers of npi learn from no plain text")
    if plan.size == "short":
        raise SpellingError("--short is for the study cola; npi has --train and --quick")
    if plan.out is None and plan.size == "full":
        raise SpellingError("--train needs --out DIR, the folder for the classifiers")
    out, encoders = plan.out or home() / "npi-quick", models or list(QUICK_MODELS)
    for each in encoders:
        load_model(each)
    talk(f"classifiers: {out}")
    workers = plan.workers or (2 if plan.size == "quick" else None)
    how: dict[str, Any] = {"vectors": plan.vectors, "workers": workers, "engine": plan.engine, "suite": given.suite}
    how |= {"restarts": plan.more.restarts or 1, "intermediate": plan.more.intermediate}
    with progress_bar() as progress:
        carry_out(
            plan.size,
            out,
            encoders,
            tell=lambda tick: progress(tick.stage, tick.done, tick.total or tick.done),
            **how,
        )
    return encoders, replace(given, restarts=[*given.restarts, out])


def _complete(plan: _Plan, models: list[str]) -> tuple[_Plan, list[str]]:
    """Return a plan with a folder; a quick one also with models and text, where none are given."""
    from acceptability.studies.cola_train import QUICK_MODELS, own_text

    if plan.size != "quick":
        if plan.out is None:
            raise SpellingError("--train needs --out DIR, the folder for the classifiers")
        return plan, models
    out = plan.out or home() / "cola-quick"
    talk(f"classifiers: {out}")
    if not plan.corpus:
        text, dev = own_text(out)
        plan = replace(plan, corpus=[text], dev=[dev])
        talk("text: CoLA's own acceptable sentences, since no --corpus is given")
    return replace(plan, out=out, workers=plan.workers or 2), models or list(QUICK_MODELS)


def _paper(
    name: str, models: list[str], given: _Given, table: str | None, csv: Path | None, as_json: bool, page: Path | None
) -> None:
    """Show every number of a paper with ours beside it; that some do not agree is a finding, not a failure."""
    for each in models:
        load_model(each)
    with progress_bar() as progress:
        asked: dict[str, Any] = {"corpus": given.corpus, "restarts": given.restarts, "suite_i": given.suite_i}
        asked |= {"suite": given.suite, "ratings": given.ratings or ""}
        cells = study(name, models, **asked, progress=progress)
    found = _of_table(cells, table)
    rows = [cell.as_row() for cell in found]
    if as_json:
        print_json(rows)
    else:
        for each in dict.fromkeys(cell.table for cell in found):
            print_table(cell_table(each, [cell for cell in found if cell.table == each]))
        talk(agreement(found))
    if csv:
        write_sheet(csv, rows)
    run = save_run("study", arguments(), rows, [], [])
    saved(run)
    report_run(page, run, [], title=f"The study {name}, computed again")


def _of_table(cells: list[Cell], table: str | None) -> list[Cell]:
    """Return the cells of one table, or all of them."""
    known = list(dict.fromkeys(cell.table for cell in cells))
    kept = [cell for cell in cells if table is None or cell.table.lower() == table.lower()]
    if table is not None and not kept:
        raise UnknownName("table", table, known, hint=f"There are: {', '.join(known)}.")
    return kept


def _described(file: Path, page: Path | None, as_json: bool) -> None:
    """Run the study that a TOML file describes."""
    asked = _read(file)
    how = bootstrap(
        asked.get("resamples", 1000),
        asked.get("resample_by", ""),
        asked.get("seed", 0),
        asked.get("interval", "percentile"),
    )
    suites = {name: load_suite(_beside(file, name)) for name in asked["suites"]}
    with progress_bar() as progress:
        results = evaluate_all(
            list(suites.values()),
            asked["models"],
            reductions=asked.get("reductions", ()),
            measures=asked.get("measures", ()),
            by=asked.get("by"),
            region=asked.get("region"),
            bootstrap=how,
            progress=progress,
        )
    show(results, as_json)
    signatures = [each.signature for each in results]
    run = save_run("study", arguments(), [each.row() for each in results], unit_rows(results), signatures)
    saved(run)
    report_run(page, run, list(suites.values()), title=asked.get("title", file.stem))


def _beside(file: Path, name: str) -> str:
    """Return where a suite in a file lies: beside the study, if it is there."""
    beside = file.parent / name
    return str(beside) if beside.is_file() else name


def _read(file: Path) -> dict[str, Any]:
    try:
        asked = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SpellingError(f"cannot read the study {file}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SpellingError(f"{file} is not TOML: {error}") from error
    kinds = dict.fromkeys(_LISTS, "a list of texts") | dict.fromkeys(_TEXTS, "a text")
    kinds |= dict.fromkeys(_NUMBERS, "a whole number")
    for key, value in asked.items():
        if key not in kinds:
            keys = ", ".join(kinds)
            raise SpellingError(f"{file}: a study has no {key!r}; it has {keys}.{suggestion(key, kinds)}")
        if not _is(value, kinds[key]):
            raise SpellingError(f"{file}: {key} must be {kinds[key]}")
    for key in ("suites", "models"):
        if not asked.get(key):
            raise SpellingError(f"{file}: a study needs {key}, a list of names")
    for name in asked["models"]:
        # A file may come from anybody, and reading one never runs code.
        if "trust_remote_code" in name:
            raise SpellingError(
                f"{file}: a file cannot let {shorten(name)!r} run its own code. If you trust the model, name it on the "
                "command line: acceptability evaluate SUITE --model …"
            )
    return asked


def _is(value: object, kind: str) -> bool:
    if kind == "a whole number":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) if kind == "a text" else _is_strings(value)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
