"""``acceptability suites``: what there is, where it comes from, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, Marks, SuiteColumns, loaded_suite, print_json, print_rows, say, talk
from acceptability.errors import ReportError, SpellingError, SuiteError
from acceptability.review import review
from acceptability.suites import Entry, catalog, load_suite
from acceptability.suites.catalog import entries, known_entries
from acceptability.suites.fetch import fetch as fetch_files
from acceptability.suites.fetch import is_here
from acceptability.suites.fetch import verify as verify_files
from acceptability.suites.notation import write_notation
from acceptability.suites.pairing import paired
from acceptability.suites.tables import write_jsonl
from acceptability.types import Suite

app = typer.Typer(help="List, show, fetch, verify, check, pair and export suites.", invoke_without_command=True)
Out = Annotated[Path, typer.Option("--out", help="The file to write: .jsonl, or .txt for linguists' notation.")]


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
        print_rows(["id", "language", "sentences", "contrasts", "title"], rows)


@app.command()
def show(name: str, columns: SuiteColumns = None, marks: Marks = None, as_json: Json = False) -> None:
    """Show what is known of a suite: source, licence, quirks, tags, regions, a first sentence."""
    about = [_about(entry) for entry in entries(name)]
    if not about:
        about = [_of_file(name, loaded_suite(name, columns, marks))]
    if as_json:
        print_json(about)
        return
    for each in about:
        for key, value in each.items():
            for line in value if isinstance(value, list) else [value]:
                say(f"{key + ':':<12} {line}")
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
    out: Out,
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Write a suite as JSONL, one sentence a line, or as .txt in linguists' notation."""
    _write(loaded_suite(name, columns, marks), out, as_json)


@app.command()
def pair(
    name: str,
    out: Out,
    by: Annotated[str, typer.Option("--by", help="The tag whose values are the items.")] = "item",
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Make contrasts: every acceptable sentence of an item against every unacceptable one."""
    _write(paired(loaded_suite(name, columns, marks), by), out, as_json)


@app.command()
def check(
    name: str,
    effect: Annotated[float, typer.Option("--effect", help="The pair accuracy to be told from chance.")] = 0.6,
    language: Annotated[str, typer.Option("--language", help="Whose word frequencies to compare by.")] = "",
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Say what a careful reviewer would say of a suite."""
    if not 0.5 < effect < 1:
        raise SpellingError(f"--effect is {effect}; expected a pair accuracy between 0.5 and 1")
    suite = loaded_suite(name, columns, marks)
    findings = review(suite, effect=effect, language=language or _language(name, suite))
    if as_json:
        print_json([{"kind": each.kind, "message": each.message, "ids": list(each.ids)} for each in findings])
        return
    for each in findings:
        shown = ", ".join(each.ids[:8]) + (f", … and {len(each.ids) - 8} more" if len(each.ids) > 8 else "")
        say(f"{each.kind}: {each.message}" + (f": {shown}" if shown else ""))
    if not findings:
        say(f"nothing to remark on in {suite.name}")


def _language(name: str, suite: Suite) -> str:
    """Return the language of a suite: what its sentences say, or its catalog, or English."""
    tagged = {sentence.tags.get("language") for sentence in suite.sentences}
    if len(tagged) == 1 and (only := tagged.pop()):
        return only
    above = [entry for entry in catalog() if f"{name}/".startswith(f"{entry.id}/")]
    return next((entry.language for entry in [*entries(name), *above]), "en")


def _write(suite: Suite, out: Path, as_json: bool) -> None:
    """Write a suite to a file, in the format that its name asks for."""
    ending = out.suffix.lower()
    if ending not in (".jsonl", ".txt"):
        raise SpellingError(f"--out {out}: give it a name that ends in .jsonl, or in .txt for linguists' notation")
    try:
        if ending == ".jsonl":
            write_jsonl(suite, out)
        else:
            out.write_text(write_notation(suite), encoding="utf-8", newline="\n")
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
    } | (_inside(load_suite(entry.id)) if is_here(entry) else {"tags": "fetch the suite to see them"})


def _of_file(name: str, suite: Suite) -> dict[str, object]:
    counts = {"sentences": len(suite.sentences), "contrasts": len(suite.contrasts)}
    return {"id": suite.signature, "read as": name} | counts | _inside(suite)


def _inside(suite: Suite) -> dict[str, object]:
    """Return what one can measure, group by and select in a suite."""
    return {
        "labels": sum(sentence.label is not None for sentence in suite.sentences),
        "ratings": sum(sentence.rating is not None for sentence in suite.sentences),
        "tags": ", ".join(suite.tag_names) or "none",
        "regions": ", ".join(dict.fromkeys(name for each in suite.sentences for name in each.regions)) or "none",
        "first id": suite.sentences[0].id,
        "first": suite.sentences[0].text,
    }
