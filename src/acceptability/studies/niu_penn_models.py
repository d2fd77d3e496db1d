"""Tables 1 to 6 of Niu and Penn (2020) for a model of the user's own, under the paper's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acceptability.errors import MissingExtra
from acceptability.protocols import Engine
from acceptability.scoring import Progress, load_reduction, scored
from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.lenient import lenient
from acceptability.studies.minimal import minimal_structures
from acceptability.studies.niu_penn_cola import in_lower_case, labelled_cola, table_2, table_5
from acceptability.studies.niu_penn_folder import slor_of, trained_on
from acceptability.studies.niu_penn_groups import Group, table_4
from acceptability.studies.niu_penn_inquiry import table_3
from acceptability.studies.niu_penn_pbc import Scored
from acceptability.studies.niu_penn_perplexity import table_1
from acceptability.studies.niu_penn_sense import NORMS, colorless_cell, permutations, table_6
from acceptability.studies.niu_penn_texts import Texts
from acceptability.suites import load_suite
from acceptability.types import Suite

_PLAIN = {"Raw": "lp", "Norm": "mean_lp"}


@dataclass(frozen=True)
class Asked:
    """A model, and where it runs."""

    model: str
    engine: str | Engine = "local"
    progress: Progress | None = None

    def scores(self, suite: Suite, reductions: Mapping[str, str]) -> Scored:
        """Return the scores of a suite by normalisation, from one pass of the model."""
        # A cluster opens models by their spelling, which cannot say that they are lenient.
        model = lenient(self.model) if self.engine == "local" else self.model
        found = scored(suite, model, list(reductions.values()), engine=self.engine, progress=self.progress)
        return dict(zip(reductions, found, strict=True))


def rescored(asked: Asked, texts: Texts, groups: Sequence[Group], values: Mapping[Key, Printed]) -> list[Cell]:
    """Return the rows of one model in every table, without a word on what it was trained on.

    Args:
        groups: Those of Table 4.
        values: What the paper prints.
    """
    model = asked.model
    reductions, unigrams, missing = _reductions(model)
    short = {norm: spelling for norm, spelling in reductions.items() if norm in NORMS}
    return [
        colorless_cell(model, values),
        *table_1(model, texts.plain, asked.progress),
        *_of_cola(asked, reductions, (unigrams, missing), groups),
        *_of_inquiry(asked),
        *table_6(model, _with_scores(asked, permutations(), short), _sense(asked, texts.sense, short)),
    ]


def with_text(model: str, cells: Sequence[Cell]) -> list[Cell]:
    """Return the rows of a model with notes that tell what it was trained on, as its folder says."""
    about = trained_on(model)
    return [replace(cell, note="; ".join(filter(None, (cell.note, about)))) for cell in cells]


def _of_cola(
    asked: Asked, reductions: Mapping[str, str], about: tuple[str, str], groups: Sequence[Group]
) -> list[Cell]:
    cola = labelled_cola()
    with_case = asked.scores(cola, reductions)
    in_both = {"with case": with_case, "lower": asked.scores(in_lower_case(cola), _PLAIN)}
    return [
        *table_2(asked.model, cola, with_case, *about),
        *table_4(asked.model, groups, {norm: with_case[norm] for norm in _PLAIN}),
        *table_5(asked.model, cola, in_both, _PLAIN),
    ]


def _of_inquiry(asked: Asked) -> list[Cell]:
    minimal = minimal_structures(load_suite("li_adger"))
    strings = Suite("minimal structures", tuple(each for strings in minimal.values() for each in strings))
    return list(table_3(asked.model, minimal, asked.scores(strings, _PLAIN)))


def _sense(asked: Asked, suite: Suite | None, reductions: Mapping[str, str]) -> tuple[Suite, Scored] | None:
    return _with_scores(asked, suite, reductions) if suite else None


def _with_scores(asked: Asked, suite: Suite, reductions: Mapping[str, str]) -> tuple[Suite, Scored]:
    return suite, asked.scores(suite, reductions)


def _reductions(model: str) -> tuple[dict[str, str], str, str]:
    """Return the reductions of Table 2, whose unigrams SLOR takes, and why SLOR is not among them if it is not."""
    slor, unigrams = slor_of(model)
    try:
        load_reduction(slor)
    except MissingExtra as error:
        return _PLAIN, unigrams, str(error)
    return {**_PLAIN, "SLOR": slor}, unigrams, ""
