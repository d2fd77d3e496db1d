"""The suites of saved rows, read again, and what the store keeps of models' answers to their sentences."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acceptability.errors import AcceptabilityError
from acceptability.home import home
from acceptability.report.gather import Material
from acceptability.request import Request
from acceptability.signature import parse
from acceptability.store.said import Store
from acceptability.suites import load_suite
from acceptability.types import Said, Sentence, Suite, TokenScores


@dataclass(frozen=True)
class Token:
    """A token of a sentence: where it stands, and how surprising it is to a model."""

    start: int
    end: int
    surprisal_bits: float


def with_suites(material: Material, given: Sequence[Suite] = ()) -> Material:
    """Return the material with the suites that its rows are of; one that cannot be had is told in a note.

    Args:
        given: Suites that are there already. Others are looked for by their name, and by what was typed.
    """
    found: dict[str, Suite] = {}
    notes: list[str] = []
    for name, signature in _wanted(material).items():
        typed = [word for run in material.runs for word in _words(run.arguments)]
        suite = next((each for each in _candidates(name, typed, given) if each.signature == signature), None)
        if suite is None:
            notes.append(
                f"The sentences of {name} are not shown: what the run was made with ({signature}) could not be found. "
                "Name its file with --suite."
            )
        else:
            found[name] = suite
    return replace(material, suites=found, notes=(*material.notes, *notes))


def _wanted(material: Material) -> dict[str, str]:
    """Return the signature of each suite that rows are of."""
    signed = [parse(each).get("suite", "") for each in material.signatures]
    return {each.rpartition("#")[0]: each for each in signed if "#" in each and "+targets(" not in each}


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return []


def _candidates(name: str, typed: Iterable[str], given: Sequence[Suite]) -> Iterator[Suite]:
    yield from given
    for word in dict.fromkeys((name, *typed)):
        if word == name or name in word:
            try:
                yield load_suite(word)
            except AcceptabilityError:
                # Not a suite, or one that is not here: the next word may be.
                continue


def stored_tokens(
    suite: Suite, sentences: Sequence[Sentence], models: Mapping[str, str]
) -> dict[str, dict[str, list[Token]]]:
    """Return the tokens of sentences for each model, by sentence id, from the store alone; no model is opened.

    Args:
        models: What each model is called, and its signature in a result, which a reduction's follows.
    """
    if not (home() / "scores.sqlite").is_file() or not sentences:
        return {}
    part = Suite(suite.name, tuple(sentences))
    request = Request(part)
    found: dict[str, dict[str, list[Token]]] = {}
    with Store() as store:
        kept = sorted(store.counts(), key=len, reverse=True)
        for name, signature in models.items():
            stored = next((each for each in kept if signature.startswith(f"{each}.")), None)
            if stored is None:
                continue
            said = store.known(stored, request.keys, lambda place: request[place].text)
            found[name] = dict(_by_sentence(part, request, said))
    return {name: tokens for name, tokens in found.items() if tokens}


def _by_sentence(suite: Suite, request: Request, said: Iterable[tuple[int, Said]]) -> Iterator[tuple[str, list[Token]]]:
    for place, each in said:
        if isinstance(each, TokenScores):
            bits = (-each.logprobs / math.log(2)).tolist()
            tokens = [Token(*span, value) for span, value in zip(each.offsets, bits, strict=True)]
            for sentence in request.sentences(place):
                yield suite.sentences[sentence].id, tokens
