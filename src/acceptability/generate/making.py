"""From paradigms to sentences with labels, tags and contrasts, the same ones for the same seed.

Of each paradigm every combination of its factors becomes a sentence. A sentence is acceptable if one of the conditions
under ``acceptable`` holds; a contrast is two sentences of a paradigm that differ in one factor and in their label. No
sentence is made twice: words that give one that has been made are drawn anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from acceptability.errors import SpellingError, SuiteError
from acceptability.generate.constraints import Term, agree
from acceptability.generate.drawing import Drawer, Drawn, value_of
from acceptability.generate.features import features
from acceptability.generate.paradigm import Condition, Paradigm, ParadigmFile
from acceptability.generate.template import Hole, Piece, as_sentence, filled, tidy
from acceptability.generate.words import spelled
from acceptability.generate.writing import Made
from acceptability.types import Contrast, Sentence, Suite, contrast

_IN_VAIN = 1000
REST = "rest"


@dataclass
class _Run:
    """A seed, and every text that has been made so far."""

    seed: int
    seen: set[str] = field(default_factory=set)


def made(files: Iterable[ParadigmFile], *, seed: int, tally: Counter[str] | None = None) -> Iterator[Made]:
    """Yield the sentences of files of paradigms, one paradigm after the other; no two files share a sentence."""
    if seed < 0:
        raise SpellingError(f"seed is {seed}; expected 0 or more")
    run = _Run(seed)
    counts: Counter[str] = Counter() if tally is None else tally
    for file in files:
        for sentences in _file(file, run):
            counts["paradigms"] += 1
            counts["sentences"] += len(sentences)
            counts["acceptable"] += sum(each.sentence.label == 1 for each in sentences)
            counts["contrasts"] += sum(len(each.better_than) for each in sentences)
            yield from sentences


def suite_of(name: str, rows: Iterable[Made]) -> Suite:
    """Return made sentences as a suite."""
    found = list(rows)
    by_id = {each.sentence.id: each.sentence for each in found}
    contrasts: list[Contrast] = [contrast(each.sentence, by_id[worse]) for each in found for worse in each.better_than]
    return Suite(name, tuple(by_id.values()), tuple(contrasts))


def _file(file: ParadigmFile, run: _Run) -> Iterator[list[Made]]:
    splits = _splits(file, run.seed)
    number = 0
    for paradigm in file.paradigms:
        drawer = Drawer(paradigm, file.words, Random(f"{run.seed}/{file.name}/{paradigm.name}"))
        maker = _Maker(file, paradigm)
        for drawn, texts in _distinct(maker, drawer, run):
            number += 1
            split = {"split": splits[number - 1]} if splits else {}
            yield maker.sentences(drawn, texts, number, split)


def _splits(file: ParadigmFile, seed: int) -> list[str]:
    """Return the split of every paradigm of a file, in a random order; those that are left are the rest."""
    if not file.splits:
        return []
    total = sum(each.count for each in file.paradigms)
    names = [name for name, count in file.splits.items() for _ in range(count)]
    names += [REST] * (total - len(names))
    Random(f"{seed}/{file.name}/splits").shuffle(names)
    return names


def _distinct(maker: _Maker, drawer: Drawer, run: _Run) -> Iterator[tuple[Drawn, list[str]]]:
    """Yield words and the texts that they make, none of which has been made before."""
    paradigm = drawer.paradigm
    count = in_vain = 0
    for drawn in drawer.many():
        if paradigm.count and count == paradigm.count:
            return
        texts = maker.texts(drawn)
        if not paradigm.repeats and not _are_new(texts, run.seen):
            in_vain += 1
            if paradigm.cross or in_vain == _IN_VAIN:
                raise SuiteError(_used_up(paradigm, count, texts))
            continue
        run.seen.update(texts)
        in_vain = 0
        count += 1
        yield drawn, texts


def _are_new(texts: Sequence[str], seen: set[str]) -> bool:
    return len(set(texts)) == len(texts) and seen.isdisjoint(texts)


def _used_up(paradigm: Paradigm, count: int, texts: Sequence[str]) -> str:
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        return f"{paradigm.where}: two conditions give the same sentence, {twice!r}. Let a part tell them apart."
    return (
        f"{paradigm.where}: after {count} paradigms every further one repeats a sentence. Lower the count, ask less "
        "of the slots, or write repeats = true."
    )


class _Maker:
    """Fills the templates of one paradigm."""

    def __init__(self, file: ParadigmFile, paradigm: Paradigm) -> None:
        self.file = file
        self.paradigm = paradigm
        self.templates = [paradigm.flat(paradigm.sentence, each) for each in paradigm.conditions]
        self.tags = [
            {name: paradigm.flat(pieces, each) for name, pieces in paradigm.tags.items()}
            for each in paradigm.conditions
        ]

    def texts(self, drawn: Drawn) -> list[str]:
        """Return the sentence of every condition."""
        return [as_sentence(self._filled(pieces, drawn)) for pieces in self.templates]

    def sentences(self, drawn: Drawn, texts: list[str], number: int, split: dict[str, str]) -> list[Made]:
        """Return the sentences of a paradigm, with labels, tags and contrasts."""
        paradigm = self.paradigm
        where = f"{self.file.name}/{paradigm.name}/{number}"
        labels = [int(self._is_acceptable(drawn, each)) for each in paradigm.conditions]
        ids = [f"{where}/{'-'.join(each.values())}" for each in paradigm.conditions]
        worse: list[list[str]] = [[] for _ in ids]
        for one, two in paradigm.neighbors:
            if labels[one] != labels[two]:
                better, other = (one, two) if labels[one] else (two, one)
                worse[better].append(ids[other])
        shared = {"paradigm": str(number)} | split | {"set": where}
        return [
            Made(Sentence(ids[place], text, label=labels[place], tags=self._tags(place, drawn) | shared), worse[place])
            for place, text in enumerate(texts)
        ]

    def _tags(self, place: int, drawn: Drawn) -> dict[str, str]:
        own = {name: tidy(self._filled(pieces, drawn)) for name, pieces in self.tags[place].items()}
        return dict(self.file.tags) | own | dict(self.paradigm.conditions[place])

    def _filled(self, pieces: tuple[Piece, ...], drawn: Drawn) -> str:
        return filled(pieces, lambda hole: self._word(hole, drawn))

    def _word(self, hole: Hole, drawn: Drawn) -> str:
        found = drawn[hole.name]
        try:
            if not hole.terms:
                return spelled(found.word, found.chosen)
            here = {term.left: _value(term, drawn) for term in hole.terms}
            return spelled(found.word, {**found.chosen, **here})
        except SuiteError as error:
            raise SuiteError(f"{self.paradigm.slots[hole.name].where}: slot {hole.name!r}: {error}") from error

    def _is_acceptable(self, drawn: Drawn, condition: Condition) -> bool:
        return any(all(_holds(term, drawn, condition) for term in terms) for terms in self.paradigm.acceptable)


def _value(term: Term, drawn: Drawn) -> str:
    values = value_of(term.reference, drawn) if term.reference else term.values
    if not values:
        raise SuiteError(f"{term}: the word that was drawn there has no such feature; ask for it in its slot")
    return values[0]


def _holds(term: Term, drawn: Drawn, condition: Condition) -> bool:
    if not term.slot:
        return (condition[term.left] in term.values) == term.is_equal
    found = drawn[term.slot]
    other = value_of(term.reference, drawn) if term.reference else term.values
    feature = features().feature(found.word.category, term.left)
    return agree(feature.type, found.values(term.left), other) == term.is_equal
