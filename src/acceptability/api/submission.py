"""Submission files for test sets with hidden labels: predictions in the formats of GLUE and Kaggle for CoLA.

GLUE's ``test.tsv`` has the columns ``index`` and ``sentence``; a submission is a file ``CoLA.tsv`` with ``index`` and
``prediction``. The two open evaluations on Kaggle provide ``cola_in_domain_test.tsv`` and
``cola_out_of_domain_test.tsv`` with ``Id`` and ``Sentence``, and accept a CSV file with ``Id`` and ``Label``. None of
these files uses quoting.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptability import __version__
from acceptability.api.interface.arguments import check_list
from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import ReportError, ScoreError, SuiteError, UnknownName, shorten
from acceptability.measures.classification import majority_vote
from acceptability.protocols import Engine
from acceptability.specs import build_signature
from acceptability.text.io import read_lines
from acceptability.types import Scores, Sentence, Suite


@dataclass(frozen=True)
class SubmissionFormat:
    """The file formats of a benchmark: its test sets and the predictions that it accepts.

    Args:
        name: The name of the benchmark.
        test_header: The header of its test sets.
        prediction_header: The header of a file of predictions.
        delimiter: The separator of the cells of a file of predictions.
        file: The name of that file; ``{stem}`` is the name of the test set.
        sizes: The possible numbers of sentences of a test set.
    """

    name: str
    test_header: tuple[str, str]
    prediction_header: tuple[str, str]
    delimiter: str
    file: str
    sizes: tuple[int, ...]


SUBMISSION_FORMATS = (
    SubmissionFormat("GLUE", ("index", "sentence"), ("index", "prediction"), "\t", "CoLA.tsv", (1063,)),
    SubmissionFormat("Kaggle", ("Id", "Sentence"), ("Id", "Label"), ",", "{stem}.csv", (530, 533)),
)


@dataclass(frozen=True, eq=False)
class TestSet:
    """The sentences of a test set, in order, and the format of its predictions."""

    # pytest would otherwise try to collect the class as a test, because of its name.
    __test__ = False

    suite: Suite
    submission_format: SubmissionFormat

    @property
    def file(self) -> str:
        """The name of the file of predictions."""
        return self.submission_format.file.format(stem=self.suite.name)


@dataclass(frozen=True, eq=False)
class LabelPredictions:
    """The labels that one or more models predict for a test set.

    Args:
        labels: 1 or 0 for each sentence id of the file.
        ties: The number of sentences that as many models accept as reject; their label is 0.
        notes: Warnings to read before the file is submitted.
    """

    test: TestSet
    # Dictionaries keep the order of insertion, so a file of predictions has the order of the test set.
    labels: dict[str, int]
    ties: int
    signature: str
    notes: tuple[str, ...]

    def row(self) -> dict[str, object]:
        """Return a summary as one flat row, for JSON and tables."""
        return {
            "file": self.test.file,
            "for": self.test.submission_format.name,
            "sentences": len(self.labels),
            "acceptable": sum(self.labels.values()),
            "ties": self.ties,
            "notes": "; ".join(self.notes),
            "signature": self.signature,
        }

    def format_file(self) -> str:
        """Return the file's content."""
        submission_format = self.test.submission_format
        rows = [submission_format.prediction_header, *((name, str(label)) for name, label in self.labels.items())]
        return "".join(f"{submission_format.delimiter.join(row)}\n" for row in rows)


def read_test_set(path: Path) -> TestSet:
    """Return the test set in a file; the header decides between GLUE and Kaggle."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from error
    # Split by hand: the csv module would treat the quotation marks in some sentences as quoting and join lines.
    (_, header), *rows = [(line, row.split("\t")) for line, row in read_lines(content, str(path))] or [(1, [])]
    submission_format = next(
        (
            submission_format
            for submission_format in SUBMISSION_FORMATS
            if list(submission_format.test_header) == header
        ),
        None,
    )
    if submission_format is None:
        known = " nor ".join(
            f"{submission_format.name}'s ({', '.join(submission_format.test_header)})"
            for submission_format in SUBMISSION_FORMATS
        )
        raise SuiteError(
            f"{path}, line 1: the columns are {shorten(', '.join(header)) or 'none'}, neither {known} with a tab"
        )
    sentences: dict[str, Sentence] = {}
    for line, row in rows:
        _check_row(f"{path}, line {line}", header[0], row, sentences)
        sentences[row[0]] = Sentence(row[0], row[1])
    if not sentences:
        raise SuiteError(f"{path} has a header and no sentences")
    return TestSet(Suite(path.stem, tuple(sentences.values())), submission_format)


def _check_row(where: str, column: str, row: Sequence[str], before: Container[str]) -> None:
    if len(row) != 2:
        raise SuiteError(f"{where}: {len(row)} columns; expected 2")
    # isdecimal alone would accept the digits of other scripts.
    if not (row[0].isascii() and row[0].isdecimal()):
        raise SuiteError(f"{where}: the {column} is {row[0]!r}; expected a whole number")
    if row[0] in before:
        raise SuiteError(f"{where}: the {column} {row[0]} is repeated")
    if not row[1].strip():
        raise SuiteError(f"{where}: the sentence is empty; every sentence needs a prediction")


def predict_labels(
    test: TestSet,
    models: Sequence[str],
    *,
    threshold: float | None = None,
    reduce: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> LabelPredictions:
    """Return the labels that a model predicts for a test set, or the majority vote of several models.

    Args:
        test: The test set.
        models: Specs of models.
        threshold: A score above it means "acceptable". The default for a classifier's log-odds is 0.
        reduce: The reduction, by default ``log_odds`` for a classifier and ``lp`` for a language model.
    """
    check_list("models", models)
    scores = []
    for model in models:
        # Checked after every model, so that the second one does not run for nothing.
        scores.append(score(test.suite, model, reduce, engine=engine, progress=progress))
        _check_threshold(scores, threshold)
    cutoff = 0.0 if threshold is None else threshold
    # Counted with ties as 0 and with ties as 1: the sentences whose label changes are the ties.
    no, yes = (majority_vote(scores, threshold=cutoff, tie=side).values for side in (0, 1))
    ties = sum(no[sentence_id] != yes[sentence_id] for sentence_id in no)
    labels = {sentence.id: int(no[sentence.id]) for sentence in test.suite.sentences}
    fields = {
        "suite": test.suite.signature,
        "model": majority_vote(scores, threshold=cutoff).signature if len(scores) > 1 else scores[0].signature,
        "threshold": repr(cutoff),
        "n": str(len(labels)),
        "acceptability": __version__,
    }
    return LabelPredictions(
        test,
        labels,
        ties,
        build_signature("predictions", fields),
        tuple(_collect_notes(test, labels, ties, len(models))),
    )


def write_predictions(all_predictions: Sequence[LabelPredictions], out: Path) -> list[Path]:
    """Write files of predictions into a folder, and return their paths; two files of the same name are an error.

    Args:
        out: The folder, which is created if it does not exist.
    """
    names = [predictions.test.file for predictions in all_predictions]
    if len(set(names)) < len(names):
        # All GLUE submissions are called CoLA.tsv, so a second one would silently overwrite the first.
        repeated = next(name for name in names if names.count(name) > 1)
        raise ReportError(f"two test sets would be written to {out / repeated}: submit them separately or rename them")
    paths = [out / name for name in names]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, predictions in zip(paths, all_predictions, strict=True):
            # The same bytes on every system: text files on Windows would otherwise get carriage returns.
            path.write_text(predictions.format_file(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write into {out}: {error.strerror}") from error
    return paths


BENCHMARKS = ("cola",)


def submit(
    benchmark: str,
    models: Sequence[str],
    tests: Sequence[Path],
    out: Path,
    *,
    threshold: float | None = None,
    reduce: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[tuple[Path, LabelPredictions]]:
    """Write the predictions for test sets into a folder, and return each file with its predictions.

    Args:
        benchmark: The benchmark of the test sets: "cola".
        models: Specs of models; several take a majority vote.
        tests: The files of the test sets.
        out: The folder, which is created if it does not exist.
        threshold: A score above it means "acceptable". The default for a classifier's log-odds is 0.
        reduce: The reduction, by default ``log_odds`` for a classifier and ``lp`` for a language model.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
    """
    if benchmark not in BENCHMARKS:
        raise UnknownName("benchmark", benchmark, BENCHMARKS, hint="There is cola.")
    # All files are read first: a damaged second one must not be found only after the first has been scored.
    test_sets = [read_test_set(path) for path in tests]
    all_predictions = [
        predict_labels(test, models, threshold=threshold, reduce=reduce, engine=engine, progress=progress)
        for test in test_sets
    ]
    return list(zip(write_predictions(all_predictions, out), all_predictions, strict=True))


def _check_threshold(scores: Sequence[Scores], threshold: float | None) -> None:
    """Raise an error for scores without a natural threshold if none is given, and for scores on different scales."""
    newest = scores[-1]
    if threshold is None and newest.reduction != "log_odds()":
        raise ScoreError(
            f"{newest.model} uses {newest.reduction}, which has no natural threshold between acceptable and "
            "unacceptable: add --threshold NUMBER, fitted on labelled sentences (a note of MCC says which)"
        )
    # A vote of models needs labels, and log-odds and log-probabilities are on different scales.
    if newest.reduction != scores[0].reduction:
        raise ScoreError(
            f"{scores[0].model} uses {scores[0].reduction} and {newest.model} uses {newest.reduction}: "
            "one threshold does not suit both"
        )


def _collect_notes(test: TestSet, labels: dict[str, int], ties: int, models: int) -> list[str]:
    notes = []
    if ties:
        notes.append(f"{ties} sentences are accepted by half of the {models} models: they get 0")
    if len(labels) not in test.submission_format.sizes:
        # A warning rather than an error, since a part of a test set may be predicted for a first look.
        sizes = " or ".join(f"{size:,}" for size in test.submission_format.sizes)
        notes.append(
            f"{test.suite.name} has {len(labels):,} sentences; a test set of {test.submission_format.name} has {sizes}"
        )
    if len(set(labels.values())) == 1:
        notes.append("all sentences get the same label, so the MCC will be 0")
    return notes
