"""Predictions for test sets whose labels are kept elsewhere: the files that GLUE and Kaggle take for CoLA.

GLUE's ``test.tsv`` has the columns ``index`` and ``sentence``, and what is sent in is ``CoLA.tsv`` with ``index`` and
``prediction``. The two open evaluations on Kaggle give ``cola_in_domain_test.tsv`` and ``cola_out_of_domain_test.tsv``
with ``Id`` and ``Sentence``, and take a CSV file with ``Id`` and ``Label``. Nothing in these files is quoted.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptability import __version__
from acceptability.errors import ReportError, ScoreError, SuiteError, shorten
from acceptability.measures.restarts import majority
from acceptability.protocols import Engine
from acceptability.scoring import Progress, check_list, score
from acceptability.signature import sign
from acceptability.text import lines
from acceptability.types import Scores, Sentence, Suite


@dataclass(frozen=True)
class Layout:
    """How a place gives its test sets, and takes predictions.

    Args:
        name: Who it is.
        given: The header of its test sets.
        taken: The header of a file of predictions, whose cells ``delimiter`` parts.
        file: What that file is called; ``{stem}`` is the name of the test set.
        sizes: How many sentences its test sets have.
    """

    name: str
    given: tuple[str, str]
    taken: tuple[str, str]
    delimiter: str
    file: str
    sizes: tuple[int, ...]


LAYOUTS = (
    Layout("GLUE", ("index", "sentence"), ("index", "prediction"), "\t", "CoLA.tsv", (1063,)),
    Layout("Kaggle", ("Id", "Sentence"), ("Id", "Label"), ",", "{stem}.csv", (530, 533)),
)


@dataclass(frozen=True, eq=False)
class TestSet:
    """The sentences of a test set, in their order, and who takes predictions for it."""

    __test__ = False

    suite: Suite
    layout: Layout

    @property
    def file(self) -> str:
        """What the file of predictions is called."""
        return self.layout.file.format(stem=self.suite.name)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The labels that models give to a test set.

    Args:
        labels: 1 or 0 for each sentence, by its id in the file.
        ties: How many sentences as many models accept as not; they get 0.
        notes: What to know before the file is sent in.
    """

    test: TestSet
    labels: dict[str, int]
    ties: int
    signature: str
    notes: tuple[str, ...]

    def row(self) -> dict[str, object]:
        """Return what there is to know of them, flat."""
        return {
            "file": self.test.file,
            "for": self.test.layout.name,
            "sentences": len(self.labels),
            "acceptable": sum(self.labels.values()),
            "ties": self.ties,
            "notes": "; ".join(self.notes),
            "signature": self.signature,
        }

    def written(self) -> str:
        """Return the file's content."""
        layout = self.test.layout
        rows = [layout.taken, *((name, str(label)) for name, label in self.labels.items())]
        return "".join(f"{layout.delimiter.join(row)}\n" for row in rows)


def read_test_set(path: Path) -> TestSet:
    """Return the test set that a file holds, of GLUE or of Kaggle by its header."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from error
    (_, header), *rows = [(line, row.split("\t")) for line, row in lines(content, str(path))] or [(1, [])]
    layout = next((each for each in LAYOUTS if list(each.given) == header), None)
    if layout is None:
        known = " nor ".join(f"{each.name}'s ({', '.join(each.given)})" for each in LAYOUTS)
        raise SuiteError(
            f"{path}, line 1: the columns are {shorten(', '.join(header)) or 'none'}, neither {known}, parted by a tab"
        )
    sentences: dict[str, Sentence] = {}
    for line, row in rows:
        _check_row(f"{path}, line {line}", header[0], row, sentences)
        sentences[row[0]] = Sentence(row[0], row[1])
    if not sentences:
        raise SuiteError(f"{path} has a header and no sentences")
    return TestSet(Suite(path.stem, tuple(sentences.values())), layout)


def _check_row(where: str, column: str, row: Sequence[str], before: Container[str]) -> None:
    if len(row) != 2:
        raise SuiteError(f"{where}: {len(row)} columns; expected 2")
    if not (row[0].isascii() and row[0].isdecimal()):
        raise SuiteError(f"{where}: the {column} is {row[0]!r}; expected a whole number")
    if row[0] in before:
        raise SuiteError(f"{where}: the {column} {row[0]} comes twice")
    if not row[1].strip():
        raise SuiteError(f"{where}: there is no sentence; every one needs a prediction")


def predictions(
    test: TestSet,
    models: Sequence[str],
    *,
    threshold: float | None = None,
    reduce: str | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> Predictions:
    """Return the labels that a model gives to a test set, or the majority of several.

    Args:
        threshold: A score above it means "acceptable". A classifier's log-odds need none: it is 0.
        reduce: The reduction, by default ``log_odds`` for a classifier and ``lp`` for a language model.
    """
    check_list("models", models)
    scores = []
    for model in models:
        scores.append(score(test.suite, model, reduce, engine=engine, progress=progress))
        _check(scores, threshold)
    line = 0.0 if threshold is None else threshold
    no, yes = (majority(scores, threshold=line, tie=side).values for side in (0, 1))
    ties = sum(no[each] != yes[each] for each in no)
    labels = {each.id: int(no[each.id]) for each in test.suite.sentences}
    fields = {
        "suite": test.suite.signature,
        "model": majority(scores, threshold=line).signature if len(scores) > 1 else scores[0].signature,
        "threshold": repr(line),
        "n": str(len(labels)),
        "acceptability": __version__,
    }
    return Predictions(test, labels, ties, sign("predictions", fields), tuple(_notes(test, labels, ties, len(models))))


def write_predictions(found: Sequence[Predictions], out: Path) -> list[Path]:
    """Write files of predictions into a folder, and return where they are; two of one name are refused."""
    names = [each.test.file for each in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ReportError(f"two test sets would be written to {out / twice}: give them one by one, or other names")
    paths = [out / name for name in names]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, each in zip(paths, found, strict=True):
            path.write_text(each.written(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write into {out}: {error.strerror}") from error
    return paths


def _check(scores: Sequence[Scores], threshold: float | None) -> None:
    """Refuse scores that no line is drawn through, and those that one line does not suit."""
    newest = scores[-1]
    if threshold is None and newest.reduction != "log_odds()":
        raise ScoreError(
            f"{newest.model} scores by {newest.reduction}, which has no line of its own between acceptable and "
            "not: add --threshold NUMBER, fitted on labelled sentences (MCC(threshold='cv') tells where it lies)"
        )
    if newest.reduction != scores[0].reduction:
        raise ScoreError(
            f"{scores[0].model} scores by {scores[0].reduction} and {newest.model} by {newest.reduction}: "
            "one threshold does not suit both"
        )


def _notes(test: TestSet, labels: dict[str, int], ties: int, models: int) -> list[str]:
    notes = []
    if ties:
        notes.append(f"{ties} sentences as many of the {models} models accept as not: they get 0")
    if len(labels) not in test.layout.sizes:
        sizes = " or ".join(f"{each:,}" for each in test.layout.sizes)
        notes.append(f"{test.suite.name} has {len(labels):,} sentences; a test set of {test.layout.name} has {sizes}")
    if len(set(labels.values())) == 1:
        notes.append("all sentences get the same label, so that the MCC will be 0")
    return notes
