"""Forms as they arrive: checked to be our own, read, and turned into orders."""

from __future__ import annotations

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from acceptability.errors import SuiteError
from acceptability.measuring import checked_measures
from acceptability.serve.jobs import Job, Order, check_models, kept, known_suite, new_job, suite_of, table_name
from acceptability.serve.judging import Judges
from acceptability.serve.limits import Limits, check_table
from acceptability.serve.tokens import check_form
from acceptability.types import Suite

_MOST_FIELDS = 200


async def form_of(request: Request, limits: Limits) -> FormData:
    """Return the fields of a form that one of our own pages sent."""
    form = await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=limits.upload_bytes)
    check_form(request.headers, request.cookies, text_of(form, "visitor"))
    return form


def text_of(form: FormData, name: str) -> str:
    """Return what was typed into a field; nothing where the field is missing."""
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def models_of(form: FormData, judges: Judges) -> tuple[str, ...]:
    """Return the models that were ticked; each must be one of ours."""
    return tuple(judges[name].name for name in form.getlist("model") if isinstance(name, str))


async def table_of(form: FormData) -> tuple[str, bytes]:
    """Return the name and the content of the table that was uploaded, or else pasted."""
    sent = form.get("file")
    if isinstance(sent, UploadFile) and sent.filename:
        return table_name(sent.filename), await sent.read()
    pasted = form.get("table")
    if not isinstance(pasted, str) or not pasted.strip():
        raise SuiteError("there is no table. Choose a file, or paste one with a line of column names above it.")
    return table_name(f"pasted.{_pasted_form(pasted)}"), pasted.strip("\r\n").encode("utf-8", "replace")


def ordered_table(name: str, content: bytes, models: tuple[str, ...], by: str, limits: Limits) -> Job:
    """Return the job of evaluating a table; a table that cannot be read is refused at once."""
    check_models(models)
    job = new_job(Order(name, True, models, by), content)
    try:
        return kept(_checked(job, suite_of(job), limits))
    except BaseException:
        _forget(job)
        raise


def ordered_suite(name: str, models: tuple[str, ...], by: str, limits: Limits) -> Job:
    """Return the job of evaluating a suite of the catalog."""
    check_models(models)
    suite = known_suite(name)
    check_table(len(suite.sentences), limits)
    checked_measures(suite, (), by=by or None)
    return new_job(Order(name, False, models, by))


def _checked(job: Job, suite: Suite, limits: Limits) -> Job:
    check_table(len(suite.sentences), limits)
    checked_measures(suite, (), by=job.order.by or None)
    longest = max(suite.sentences, key=lambda sentence: len(sentence.text))
    if len(longest.text) > limits.characters:
        raise SuiteError(
            f"sentence {longest.id!r} has {len(longest.text):,} characters; the limit is {limits.characters:,}"
        )
    return job


def _forget(job: Job) -> None:
    for path in sorted(job.folder.iterdir()):
        path.unlink()
    job.folder.rmdir()


def _pasted_form(text: str) -> str:
    """Return the ending that a pasted table would have as a file: a spreadsheet pastes tabs.

    >>> _pasted_form('{"text": "Cats sleep."}'), _pasted_form("good\\tbad"), _pasted_form("text,label")
    ('jsonl', 'tsv', 'csv')
    >>> _pasted_form("He [has/*have] left.")
    'txt'
    """
    first = text.strip().splitlines()[0]
    if first.startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv"
    names = {each.strip().strip('"').lower() for each in first.split(",")}
    is_header = names & {"text", "sentence", "good", "bad", "sentence_good", "sentence_bad"}
    return "csv" if is_header else "txt"
