"""``acceptability suites``: list, show, fetch, verify, check, pair and export suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from acceptability.api.review import detect_language, review
from acceptability.cli.console import (
    DEFAULT_READING,
    JsonOption,
    SuiteReading,
    load_cli_suite,
    print_json,
    print_line,
    print_message,
    print_rows,
    with_reading,
)
from acceptability.errors import SpecError, SuiteError
from acceptability.stats.sampling_units import describe_suite_unit
from acceptability.suites import (
    CatalogEntry,
    SuiteContents,
    load_catalog,
    load_contents,
    pair_within_items,
    summarise_contents,
    write_suite,
)
from acceptability.suites.catalog import (
    fetch_files,
    find_entries,
    find_language_entries,
    require_entries,
    verify_files,
)
from acceptability.types import Suite

app = typer.Typer(help="List, show, fetch, verify, check, pair and export suites.", invoke_without_command=True)
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="The file to write: .jsonl, or .txt for the notation of linguists.")
]
NameArgument = Annotated[str, typer.Argument(help="A suite of the catalog, or a file.")]
CatalogNameArgument = Annotated[str, typer.Argument(help="A suite of the catalog, or a group of suites such as cola.")]

_MAX_EXAMPLE_IDS = 8
_MAX_FILES = 6
_MAX_LANGUAGES = 20


@app.callback()
def list_suites(
    context: typer.Context,
    language: Annotated[
        str | None, typer.Option("--language", help="Only suites of a language, by its code: zh, or zho.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List every suite, with its counts."""
    if context.invoked_subcommand:
        # Typer would drop both silently, and print a table to a program that expects JSON.
        if as_json:
            raise SpecError(f"write --json after the command: suites {context.invoked_subcommand} … --json")
        if language:
            raise SpecError(f"suites --language lists suites, and suites {context.invoked_subcommand} is given a name")
        return
    rows = [
        {"id": entry.id, "sentences": entry.sentences, "contrasts": entry.contrasts, "unit": entry.unit}
        | {"language": entry.language, "licence": entry.licence, "title": entry.title}
        for entry in (find_language_entries(language) if language else load_catalog())
    ]
    if as_json:
        print_json(rows)
    else:
        # A hundred languages of one suite would hide all others.
        print_rows(["id", "language", "sentences", "contrasts", "unit", "title"], rows if language else _fold(rows))


def _fold(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of the list with one row for each suite that exists in many languages."""
    folded: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        group = row["id"].partition("/")[0]
        members = [one for one in rows if one["id"].startswith(f"{group}/")]
        if len({one["language"] for one in members}) <= _MAX_LANGUAGES:
            folded[row["id"]] = row
            continue
        sums = {name: sum(one[name] for one in members) for name in ("sentences", "contrasts")}
        title = f"{row['title'].partition(',')[0]}, a suite for each language (suites --language CODE)"
        folded[group] = {**row, "id": f"{group}/…", "language": f"{len(members)}", **sums, "title": title}
    return list(folded.values())


@app.command()
@with_reading
def show(
    name: NameArgument,
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
) -> None:
    """Show the metadata of a suite: source, licence, quirks, tags, regions, and its first sentence."""
    descriptions = [_describe_entry(entry) for entry in find_entries(name)]
    if not descriptions:
        # Not in the catalog: a file, or part of a suite.
        descriptions = [_describe_file(name, load_cli_suite(name, reading))]
    if as_json:
        print_json(descriptions)
        return
    for description in descriptions:
        for key, value in description.items():
            for line in value if isinstance(value, list) else [value]:
                print_line(f"{key + ':':<12} {line}")
        print()


@app.command()
def fetch(name: CatalogNameArgument, as_json: JsonOption = False) -> None:
    """Download the files of a suite that are not on this machine yet, and verify them."""
    paths_by_suite = {entry.id: [str(path) for path in fetch_files(entry)] for entry in require_entries(name)}
    if as_json:
        print_json([{"id": suite_id, "files": paths} for suite_id, paths in paths_by_suite.items()])
        return
    for suite_id, paths in paths_by_suite.items():
        print(f"{suite_id}: {len(paths)} files are there and whole")


@app.command()
def verify(
    name: Annotated[
        str | None, typer.Argument(help="A suite or a group of suites of the catalog. Default: all suites.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Verify that the files of a suite are the published ones, byte by byte."""
    entries = require_entries(name) if name else list(load_catalog())
    rows = []
    problems = []
    # One damaged suite must not hide the state of the others, so that all are reported before the error.
    for entry in entries:
        try:
            rows.append({"id": entry.id, "files": len(verify_files(entry)), "ok": True})
        except SuiteError as error:
            rows.append({"id": entry.id, "files": len(entry.files), "ok": False, "problem": str(error)})
            problems.append(str(error))
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            print(f"{row['id']:<30} {row['files']:>3} files  {'ok' if row['ok'] else 'NOT OK'}")
    # Exit status 1, so that a script notices.
    if problems:
        raise SuiteError("; ".join(problems))


@app.command()
@with_reading
def export(
    name: NameArgument,
    out: OutOption,
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
) -> None:
    """Write a suite to a file: JSONL, one sentence a line, or .txt in the notation of linguists."""
    _export_suite(load_cli_suite(name, reading), out, as_json)


@app.command()
@with_reading
def pair(
    name: NameArgument,
    out: OutOption,
    by: Annotated[str, typer.Option("--by", help="The tag whose values are the items.")] = "item",
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
) -> None:
    """Add contrasts to a suite: every acceptable sentence of an item against every unacceptable one."""
    _export_suite(pair_within_items(load_cli_suite(name, reading), by), out, as_json)


@app.command()
@with_reading
def check(
    name: NameArgument,
    effect: Annotated[
        float, typer.Option("--effect", help="The pair accuracy that the suite should distinguish from chance.")
    ] = 0.6,
    language: Annotated[
        str, typer.Option("--language", help="The language of the word frequencies. Default: that of the suite.")
    ] = "",
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
) -> None:
    """Check a suite for problems: duplicates, contradictions, imbalances, too few contrasts."""
    if not 0.5 < effect < 1:
        raise SpecError(f"--effect is {effect}; expected a pair accuracy between 0.5 and 1")
    suite = load_cli_suite(name, reading)
    findings = review(suite, effect=effect, language=language or detect_language(suite, name))
    if as_json:
        print_json(
            [{"kind": finding.kind, "message": finding.message, "ids": list(finding.ids)} for finding in findings]
        )
        return
    print_line(f"sampling unit: {describe_suite_unit(suite)}")
    for finding in findings:
        shown = ", ".join(finding.ids[:_MAX_EXAMPLE_IDS])
        if len(finding.ids) > _MAX_EXAMPLE_IDS:
            shown += f", … and {len(finding.ids) - _MAX_EXAMPLE_IDS} more"
        print_line(f"{finding.kind}: {finding.message}" + (f": {shown}" if shown else ""))
    if not findings:
        print_line(f"nothing to remark on in {suite.name}")


def _export_suite(suite: Suite, out: Path, as_json: bool) -> None:
    write_suite(suite, out)
    if as_json:
        print_json({"file": str(out), "sentences": len(suite.sentences), "contrasts": len(suite.contrasts)})
    else:
        print_message(f"{len(suite.sentences)} sentences and {len(suite.contrasts)} contrasts written to {out}")


def _describe_entry(entry: CatalogEntry) -> dict[str, object]:
    contents = load_contents(entry)
    # The hashes are what `suites verify` compares with.
    files = [f"{path} {sha}" for path, sha in entry.files.items()]
    return {
        "id": entry.id,
        "title": entry.title,
        "sentences": entry.sentences,
        "contrasts": entry.contrasts,
        "unit": f"{entry.unit}: {entry.unit_reason}" if entry.unit_reason else entry.unit,
        "language": entry.language,
        "citation": entry.citation,
        "licence": entry.licence,
        "source": entry.source or "this package",
        "quirk": list(entry.quirks),
        # Some suites have a file for each of dozens of paradigms.
        "files": files if len(files) <= _MAX_FILES else [*files[:3], f"… and {len(files) - 3} more"],
    } | (_describe_contents(contents) if contents else {"tags": "known once it is on this machine"})


def _describe_file(name: str, suite: Suite) -> dict[str, object]:
    return {
        "id": suite.signature,
        "read as": name,
        "sentences": len(suite.sentences),
        "contrasts": len(suite.contrasts),
        "unit": describe_suite_unit(suite),
    } | _describe_contents(summarise_contents(suite))


def _describe_contents(contents: SuiteContents) -> dict[str, object]:
    """Return what a suite can be measured by, grouped by and restricted to."""
    return {
        "labels": contents.labels,
        "ratings": contents.ratings,
        "tags": ", ".join(contents.tags) or "none",
        "regions": ", ".join(contents.regions) or "none",
        "first id": contents.first_id,
        "first": contents.first,
    }
