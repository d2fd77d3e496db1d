"""``acceptability score``: one number for each sentence of a suite."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability import __version__
from acceptability.cli.shown import (
    Address,
    Dtype,
    EngineName,
    Json,
    Marks,
    Region,
    SuiteColumns,
    arguments,
    chosen_engine,
    loaded_suite,
    print_data,
    print_json,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import ReportError, SpellingError
from acceptability.models import in_precision, load_model
from acceptability.precision import Difference, precision_differences
from acceptability.regions import region_logprobs
from acceptability.report.rows import check_writable, write_table
from acceptability.scoring import score, tokens
from acceptability.signature import sign
from acceptability.store.runs import save_run
from acceptability.types import LabelScores, Said, Sentence
from acceptability.words import words

_FORMATS = (".csv", ".tsv", ".jsonl")


def command(
    suite: str,
    model: str,
    reduce: Annotated[str | None, typer.Option("--reduce", "-r", help="A reduction; default lp or log_odds.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the rows to this .csv, .tsv or .jsonl.")] = None,
    by_token: Annotated[bool, typer.Option("--tokens", help="One row a token instead of one a sentence.")] = False,
    by_word: Annotated[bool, typer.Option("--words", help="One row a word instead of one a sentence.")] = False,
    by_region: Annotated[bool, typer.Option("--regions", help="One row a region instead of one a sentence.")] = False,
    region: Region = None,
    dtype: Dtype = None,
    precisions: Annotated[
        bool, typer.Option("--precisions", help="Say also how far scores in lower precisions are from float32.")
    ] = False,
    engine: EngineName = "local",
    address: Address = None,
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Score every sentence of a suite with a model."""
    if out and out.suffix.lower() not in _FORMATS:
        raise SpellingError(f"--out {out}: expected a name that ends in {', '.join(_FORMATS)}")
    if out and as_json:
        raise SpellingError("--json prints rows and --out writes them: choose one")
    if out:
        check_writable(out)
    if (by_token or by_word or by_region) and (reduce or region or precisions):
        raise SpellingError(
            "--tokens, --words and --regions give what the model said itself; "
            "leave --reduce, --region and --precisions away"
        )
    if by_token + by_word + by_region > 1:
        raise SpellingError("--tokens, --words and --regions: choose one")
    if precisions and dtype:
        raise SpellingError("--precisions takes them all; leave --dtype away")
    model = in_precision(model, dtype) if dtype else model
    runner = chosen_engine(engine, address)
    loaded = loaded_suite(suite, columns, marks)
    with progress_bar() as progress:
        if by_token or by_word or by_region:
            rows_of = _token_rows if by_token else _word_rows if by_word else _region_rows
            rows = [row for each in tokens(loaded, model, engine=runner, progress=progress) for row in rows_of(*each)]
            giver = load_model(model).signature
        else:
            scores = score(loaded, model, reduce, region=region, engine=runner, progress=progress)
            rows = [{"sentence_id": each.id, "text": each.text, "score": scores[each.id]} for each in loaded.sentences]
            giver = scores.signature
    signature = sign("score", {"suite": loaded.signature, "model": giver, "acceptability": __version__})
    _write(rows, out, as_json)
    talk(signature)
    if precisions:
        with progress_bar() as progress:
            found = precision_differences(loaded, model, reduce, progress=progress)
        for each in found:
            talk(_difference(each))
    saved(save_run("score", arguments(), rows, [], [signature]))


def _token_rows(sentence: Sentence, said: Said) -> list[dict[str, object]]:
    about: dict[str, object] = {"sentence_id": sentence.id}
    if isinstance(said, LabelScores):
        names = ("unacceptable", "acceptable")
        return [about | {"label": name, "logit": logit} for name, logit in zip(names, said.logits, strict=True)]
    return [
        about | {"token": token, "start": start, "end": end, "logprob": float(logprob)}
        for token, (start, end), logprob in zip(said.tokens, said.offsets, said.logprobs.tolist(), strict=True)
    ]


def _word_rows(sentence: Sentence, said: Said) -> list[dict[str, object]]:
    if isinstance(said, LabelScores):
        raise SpellingError("--words: a classifier says nothing of single words; leave it away")
    return [
        {
            "sentence_id": sentence.id,
            "word": word.text,
            "start": word.span[0],
            "end": word.span[1],
            "logprob": word.logprob,
            "surprisal_bits": None if word.logprob is None else -word.logprob / math.log(2),
        }
        for word in words(said)
    ]


def _region_rows(sentence: Sentence, said: Said) -> list[dict[str, object]]:
    if isinstance(said, LabelScores):
        raise SpellingError("--regions: a classifier says nothing of regions; leave it away")
    if not sentence.regions:
        raise SpellingError(f"--regions: sentence {sentence.id!r} has no regions; leave it away")
    given = region_logprobs(sentence, said)
    return [
        {
            "sentence_id": f"{sentence.id}#{name}",
            "text": sentence.text[start:end],
            "start": start,
            "end": end,
            "score": given.get(name),
            "surprisal_bits": -given[name] / math.log(2) if name in given else None,
        }
        for name, (start, end) in sentence.regions.items()
    ]


def _difference(each: Difference) -> str:
    return (
        f"{each.dtype} against {each.against}: largest difference {each.largest:.4g} (sentence {each.sentence}), "
        f"mean {each.mean:.4g}; {each.changed} of {each.contrasts} contrasts are decided otherwise"
    )


def _write(rows: Sequence[Mapping[str, object]], out: Path | None, as_json: bool) -> None:
    if out is None and as_json:
        print_json(rows)
    elif out is None:
        print_data(_delimited(rows, "\t"))
    else:
        try:
            out.write_text(_formatted(rows, out.suffix.lower()), encoding="utf-8", newline="\n")
        except OSError as error:
            raise ReportError(f"cannot write {out}: {error.strerror}") from error
        talk(f"{len(rows)} rows written to {out}")


def _formatted(rows: Sequence[Mapping[str, object]], ending: str) -> str:
    if ending == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return _delimited(rows, "," if ending == ".csv" else "\t")


def _delimited(rows: Sequence[Mapping[str, object]], delimiter: str) -> str:
    out = io.StringIO()
    write_table(out, rows, list(rows[0]), delimiter)
    return out.getvalue()
