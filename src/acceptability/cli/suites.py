"""``acceptability suites``: what there is, where it comes from, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, SuiteColumns, print_json, print_rows, read_columns, talk
from acceptability.errors import ReportError, SpellingError, SuiteError
from acceptability.suites import Entry, catalog, load_suite
from acceptability.suites.catalog import entries, known_entries
from acceptability.suites.fetch import fetch as fetch_files
from acceptability.suites.fetch import verify as verify_files
from acceptability.suites.tables import is_table, write_jsonl

app = typer.Typer(help="List, show, fetch, verify and export suites.", invoke_without_command=True)


@app.callback()
def listed(context: typer.Context, as_json: Json = False) -> None:
    """List every suite, with its counts."""
    if context.invoked_subcommand:
        if as_json:
            raise SpellingError(f"write --json after the command: suites {context.invoked_subcommand} … --json")
        return
    rows = [
        {"id": entry.id, "sentences": entry.sentences, "contrasts": entry.contrasts}
        | {"language": entry.language, "licence": entry.licence, "title": entry.title}
        for entry in catalog()
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(["id", "sentences", "contrasts", "title"], rows)


@app.command()
def show(name: str, columns: SuiteColumns = None, as_json: Json = False) -> None:
    """Show what is known of a suite: source, licence, quirks; of a file, its tags and first sentence."""
    about = [_about(entry) for entry in entries(name)]
    if not about:
        about = [_of_file(name, columns)]
    if as_json:
        print_json(about)
        return
    for each in about:
        for key, value in each.items():
            for line in value if isinstance(value, list) else [value]:
                print(f"{key + ':':<12} {line}")
        print()


@app.command()
def fetch(name: str, as_json: Json = False) -> None:
    """Download the files of a suite that are not on this machine, check them, and keep them."""
    found = {entry.id: [str(path) for path in fetch_files(entry)] for entry in known_entries(name)}
    if as_json:
        print_json([{"id": each, "files": paths} for each, paths in found.items()])
        return
    for each, paths in found.items():
        print(f"{each}: {len(paths)} files are there and whole")


@app.command()
def verify(name: Annotated[str | None, typer.Argument()] = None, as_json: Json = False) -> None:
    """Check that the files of a suite, or of all, are the published ones."""
    wanted = known_entries(name) if name else list(catalog())
    rows = []
    problems = []
    for entry in wanted:
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
    if problems:
        raise SuiteError("; ".join(problems))


@app.command()
def export(
    name: str,
    out: Annotated[Path, typer.Option("--out", help="The JSONL file to write.")],
    columns: SuiteColumns = None,
    as_json: Json = False,
) -> None:
    """Write a suite as JSONL, one sentence a line."""
    if out.suffix.lower() != ".jsonl":
        raise SpellingError(f"--out {out}: a suite is written as JSONL; give it a name that ends in .jsonl")
    suite = load_suite(name, columns=read_columns(columns))
    try:
        write_jsonl(suite, out)
    except OSError as error:
        raise ReportError(f"cannot write {out}: {error.strerror}") from error
    if as_json:
        print_json({"file": str(out), "sentences": len(suite.sentences), "contrasts": len(suite.contrasts)})
    else:
        talk(f"{len(suite.sentences)} sentences and {len(suite.contrasts)} contrasts written to {out}")


def _about(entry: Entry) -> dict[str, object]:
    files = [f"{path} {sha}" for path, sha in entry.files.items()]
    return {
        "id": entry.id,
        "title": entry.title,
        "sentences": entry.sentences,
        "contrasts": entry.contrasts,
        "language": entry.language,
        "citation": entry.citation,
        "licence": entry.licence,
        "source": entry.source or "this package",
        "quirk": list(entry.quirks),
        "files": files if len(files) <= 6 else [*files[:3], f"… and {len(files) - 3} more"],
    }


def _of_file(name: str, columns: str | None) -> dict[str, object]:
    suite = load_suite(name, columns=read_columns(columns))
    labels = sum(sentence.label is not None for sentence in suite.sentences)
    ratings = sum(sentence.rating is not None for sentence in suite.sentences)
    return {
        "id": suite.signature,
        "file": name if is_table(name) else "part of a suite of the catalog",
        "sentences": len(suite.sentences),
        "contrasts": len(suite.contrasts),
        "labels": labels,
        "ratings": ratings,
        "tags": list(suite.tag_names),
        "first": suite.sentences[0].text,
    }
