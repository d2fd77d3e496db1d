"""Forms as they arrive: checked to be our own, read, and turned into orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request

from acceptability.errors import SuiteError
from acceptability.measuring import checked_measures
from acceptability.serve.jobs import Job, Order, check_models, kept, known_suite, new_job, suite_of, table_name
from acceptability.serve.judging import Judges
from acceptability.serve.limits import Limits, check_table
from acceptability.serve.tokens import check_form
from acceptability.types import Suite

_MOST_FIELDS = 200


@dataclass(frozen=True)
class Form:
    """What was typed, ticked and uploaded."""

    fields: Mapping[str, Sequence[str]]
    file_name: str = ""
    file: bytes = b""

    def text(self, name: str) -> str:
        """Return what was typed into a field; nothing where the field is missing."""
        return next(iter(self.fields.get(name, ())), "").strip()

    def models(self, judges: Judges) -> tuple[str, ...]:
        """Return the models that were ticked, each once; each must be one of ours."""
        return judges.chosen(self.fields.get("model", ()))

    def table(self) -> tuple[str, bytes]:
        """Return the name and the content of the table that was uploaded, or else pasted."""
        if self.file_name:
            return table_name(self.file_name), self.file
        pasted = self.text("table")
        if not pasted:
            raise SuiteError("there is no table. Choose a file, or paste one with a line of column names above it.")
        return table_name(f"pasted.{_pasted_form(pasted)}"), coded(pasted)


def coded(table: str) -> bytes:
    """Return a table as the file that it would be; one that no file can hold is refused.

    >>> coded("text")
    b'text'
    """
    try:
        return table.encode()
    except UnicodeEncodeError as error:
        found = ascii(table[error.start])
        raise SuiteError(
            f"the table holds {found}, half of a character, which UTF-8 cannot hold. Take it out."
        ) from error


async def form_of(request: Request, limits: Limits) -> Form:
    """Return the form that one of our own pages sent."""
    async with request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=limits.upload_bytes) as sent:
        fields: dict[str, list[str]] = {}
        file_name, file = "", b""
        for name, value in sent.multi_items():
            if isinstance(value, str):
                fields.setdefault(name, []).append(value)
            elif name == "file" and value.filename:
                file_name, file = value.filename, await value.read()
    form = Form(fields, file_name, file)
    check_form(request.headers, request.cookies, form.text("visitor"))
    return form


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
