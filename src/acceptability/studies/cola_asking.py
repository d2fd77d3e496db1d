"""Many classifiers asked side by side: what they say is kept in the store, where the study of CoLA finds it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from acceptability.engine.processes import calls
from acceptability.errors import ModelError
from acceptability.studies.cells import printed
from acceptability.studies.cola_classifiers import asked_suites
from acceptability.studies.cola_design import titled
from acceptability.studies.cola_groups import Group
from acceptability.studies.cola_judging import both_domains
from acceptability.studies.cola_splits import find_split, parts
from acceptability.studies.niu_penn_models import Asked
from acceptability.train.tick import Tell, Tick
from acceptability.types import Suite


@dataclass(frozen=True)
class _Questions:
    """What one classifier is asked."""

    model: str
    suites: tuple[Suite, ...]


def ask_together(groups: Sequence[Group], *, workers: int, tell: Tell = lambda _: None) -> None:
    """Let the classifiers of all groups judge the sentences that the study has for them, several at once."""
    asked = [_Questions(run.spelling, suites) for group in groups for suites in [_suites(group)] for run in group.runs]
    with closing(calls(_answered, asked, workers=workers, hear=lambda place, news: None)) as outcomes:
        for done, outcome in enumerate(outcomes, 1):
            if outcome.problem:
                raise ModelError(f"{asked[outcome.place].model}: {outcome.problem}")
            tell(Tick("classifiers asked", done, len(asked)))


def _suites(group: Group) -> tuple[Suite, ...]:
    if group.split:
        return tuple(titled(parts(find_split(group.split, printed("cola")))).values())
    return (both_domains(),) if group.size is not None else asked_suites()


def _answered(questions: _Questions, _: Any) -> None:
    """Ask one classifier; called in a process of its own."""
    for suite in questions.suites:
        Asked(questions.model).scores(suite, {"log_odds": "log_odds"})
