"""Suite II of Park, Park and Song (2021): pairs of sentences from CoLA's four syntax textbooks.

The authors wrote an acceptable counterpart to many unacceptable sentences; these are unpublished. So a pair
counts here only if both of its sentences stand in the same book:

- they have one target (``suites.targets``): a substitution, an insertion or deletion, a movement;
- they differ in few words: one for one, or two more in one of them; a movement may be longer;
- they share at least two words.

Of several acceptable sentences the one that differs in the fewest words is taken, then the one that comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptability.studies.cola_splits import SOURCES
from acceptability.suites import load_suite
from acceptability.suites.targets import Exclusion, Target, find_target, pieces
from acceptability.types import Contrast, Sentence, Suite

BOOKS = ("ad03", "c_13", "m_02", "sks13")
"""As CoLA's files name them: Adger (2003), Carnie (2013), Miller (2002), Sportiche et al. (2013)."""

_PUBLIC = ("cola/train", "cola/in_domain_dev", "cola/out_of_domain_dev")
_MOST = 2
_LEAST = 2
_AGAIN = "the unacceptable sentence stands in the book before"
_NONE = "no acceptable sentence of the book differs from the unacceptable one in one place"
_LOOSE = f"acceptable sentences differ in one place, but in more than {_MOST} words, or share fewer than {_LEAST}"


@dataclass(frozen=True)
class _Read:
    """A sentence, and its words, the first one without its capital."""

    sentence: Sentence
    words: tuple[str, ...]


def textbook_sentences() -> list[Sentence]:
    """Return the sentences of the four books in CoLA's public files; the tag ``book`` is the paper's name of a book."""
    return [
        Sentence(each.id, each.text, label=each.label, tags={**each.tags, "book": SOURCES[each.tags["source"]]})
        for name in _PUBLIC
        for each in load_suite(name).sentences
        if each.tags["source"] in BOOKS
    ]


def textbook_pairs(sentences: Sequence[Sentence]) -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return the pairs, and why the other unacceptable sentences are in none; ``Exclusion.contrast`` is their id."""
    contrasts: list[Contrast] = []
    excluded: list[Exclusion] = []
    for book in dict.fromkeys(each.tags["book"] for each in sentences):
        read = [_Read(each, _words(each.text)) for each in sentences if each.tags["book"] == book]
        good, seen = [each for each in read if each.sentence.label == 1], set()
        for bad in (each for each in read if each.sentence.label == 0):
            found = Exclusion(_AGAIN) if bad.words in seen else _partner(bad, good)
            seen.add(bad.words)
            if isinstance(found, Exclusion):
                excluded.append(Exclusion(found.reason, bad.sentence.id))
            else:
                contrasts.append(Contrast(found.id, bad.sentence.id, {"book": book}))
    return Suite("park/II", tuple(sentences), tuple(contrasts)), tuple(excluded)


def _partner(bad: _Read, good: Sequence[_Read]) -> Sentence | Exclusion:
    """Return the acceptable sentence that differs least, or why there is none."""
    near = list(_near(bad, good))
    kept = [(size, place) for size, place, is_close in near if is_close]
    if kept:
        return good[min(kept)[1]].sentence
    return Exclusion(_LOOSE if near else _NONE)


def _near(bad: _Read, good: Sequence[_Read]) -> Iterator[tuple[int, int, bool]]:
    """Yield acceptable sentences with one target: in how many words they differ, their place, whether that is close."""
    counts = Counter(bad.words)
    for place, each in enumerate(good):
        shared = _shared(each.words, bad.words)
        ours, theirs = len(each.words) - shared, len(bad.words) - shared
        is_turned = ours == theirs and Counter(each.words) == counts
        # Cheap, and true wherever there is a target.
        if not is_turned and min(ours, theirs) > 1:
            continue
        if isinstance(find_target(each.sentence.text, bad.sentence.text), Target):
            is_few = is_turned or ours + theirs <= _MOST
            yield max(ours, theirs), place, is_few and (shared >= _LEAST or is_turned)


def _words(text: str) -> tuple[str, ...]:
    found = [piece.text for piece in pieces(text) if piece.is_word]
    return (found[0][:1].lower() + found[0][1:], *found[1:]) if found else ()


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two sentences share at their beginnings and, of the rest, at their ends.

    >>> _shared(["he", "always", "eats"], ["he", "eats"])
    2
    """
    least = min(len(one), len(other))
    before = next((place for place in range(least) if one[place] != other[place]), least)
    rest = least - before
    return before + next((place for place in range(rest) if one[-1 - place] != other[-1 - place]), rest)
