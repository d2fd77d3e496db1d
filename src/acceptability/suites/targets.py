"""What a contrast masks: the words on which its two sentences differ (Park, Park and Song 2021).

A word is what spaces separate, without the punctuation at its ends, which is compared mark by mark.
The first word of a sentence is the same word in another place whatever its capital.

- A substitution masks the differing words: one word in one of the sentences at least.
- A movement masks what moved, in each place. Of two parts that change places the one of fewer words
  moved; where they have as many, the one that stands first in the better sentence.
- An insertion or a deletion masks the shared word to the left of the edit in both sentences; with
  ``side='right'`` the one to its right; with ``side='bracket'`` all from the one to the other.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from re import finditer
from typing import NamedTuple, TypeAlias

from acceptability.errors import SuiteError
from acceptability.types import Contrast, Sentence, Span, Suite

SIDES = ("left", "right", "bracket")
REGION = "target"
"""The name of the region that is masked."""

_FINAL = ".?!…。？！"


@dataclass(frozen=True, slots=True)
class Target:
    """How the worse sentence of a contrast differs from the better one, and what is masked in each.

    Args:
        edit: "substitution", "insertion", "deletion" or "movement".
        better, worse: The masked characters, (start, end).
    """

    edit: str
    better: Span
    worse: Span


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a contrast has no target; ``contrast`` is its id, where it has one."""

    reason: str
    contrast: str = ""


_FRAGMENT = Exclusion("no whole sentence")
_NONE = Exclusion("the same words")
_MARKS = Exclusion("only punctuation differs")
_SEVERAL = Exclusion("more than one difference")


class Piece(NamedTuple):
    """A word or a punctuation mark, and where it stands."""

    text: str
    span: Span
    is_word: bool
    is_first: bool


Pieces: TypeAlias = Sequence[Piece]


def find_target(better: str, worse: str, *, side: str = "left") -> Target | Exclusion:
    """Return what a pair of sentences masks, or why there is nothing to mask.

    >>> find_target("The girl cut herself.", "The girl cut himself.")
    Target(edit='substitution', better=(13, 20), worse=(13, 20))
    >>> find_target("Who left?", "Left who?").edit
    'movement'
    >>> find_target("It seems that Monday she ran.", "Monday seems that she ran.").reason
    'more than one difference'
    """
    if side not in SIDES:
        raise SuiteError(f"side is {side!r}; expected one of {', '.join(map(repr, SIDES))}")
    first, second = pieces(better), pieces(worse)
    if min(len(_words(first)), len(_words(second))) < 2:
        return Exclusion("a single word")
    if _is_fragment(first, better) or _is_fragment(second, worse):
        return _FRAGMENT
    found = _target(first, second, side)
    return _by_words(first, second) if found == _SEVERAL else found


def with_targets(suite: Suite, *, side: str = "left") -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return a suite whose sentences carry the region "target", and the contrasts that have none.

    A sentence may stand in several contrasts with different targets, so each contrast gets two
    sentences of its own. A contrast gains the tags ``edit`` and ``contrast`` (its id in the suite that
    was given); a tag that only the worse sentence has, or that the two do not share, is the worse one's.
    """
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    excluded: list[Exclusion] = []
    for each in suite.contrasts:
        better, worse = suite.by_id[each.better], suite.by_id[each.worse]
        found = _marked(better, worse, each) or find_target(better.text, worse.text, side=side)
        if isinstance(found, Exclusion):
            excluded.append(replace(found, contrast=each.id))
            continue
        members = _member(each, better, "better", found.better), _member(each, worse, "worse", found.worse)
        sentences += members
        tags = {**worse.tags, **each.tags, "edit": found.edit, "contrast": each.id}
        contrasts.append(Contrast(members[0].id, members[1].id, tags))
    if not contrasts:
        raise SuiteError(f"suite {suite.name!r}: {_none(excluded)}")
    return Suite(f"{suite.name}+targets({side})", tuple(sentences), tuple(contrasts)), tuple(excluded)


def counted(exclusions: Sequence[Exclusion]) -> dict[str, int]:
    """Return how many contrasts were left out for each reason, the most frequent first.

    >>> counted([Exclusion("a"), Exclusion("b"), Exclusion("b")])
    {'b': 2, 'a': 1}
    """
    return dict(Counter(each.reason for each in exclusions).most_common())


def pieces(text: str) -> list[Piece]:
    """Return the words and the punctuation marks of a text.

    >>> [piece.text for piece in pieces("She isn't (here).")]
    ['She', "isn't", '(', 'here', ')', '.']
    """
    found: list[Piece] = []
    is_first = True
    for match in finditer(r"\S+", text):
        for start, end in _parts(match[0]):
            is_word = not _is_mark(match[0][start])
            span = match.start() + start, match.start() + end
            found.append(Piece(text[slice(*span)], span, is_word, is_word and is_first))
            is_first = is_first and not is_word
    return found


def _parts(chunk: str) -> Iterator[Span]:
    """Yield the marks before a word, the word, and the marks after it."""
    inner = [place for place, character in enumerate(chunk) if not _is_mark(character)]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(chunk), len(chunk))
    yield from ((place, place + 1) for place in range(first))
    if inner:
        yield first, last
    yield from ((place, place + 1) for place in range(last, len(chunk)))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _words(given: Pieces) -> list[Piece]:
    return [piece for piece in given if piece.is_word]


def _same(one: Piece, other: Piece) -> bool:
    if one.text == other.text:
        return True
    is_start = one.is_first or other.is_first
    return is_start and _uncapitalised(one.text) == _uncapitalised(other.text)


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_fragment(given: Pieces, text: str) -> bool:
    """Tell whether a text is two words that neither begin nor end as a sentence does, such as "his book"."""
    words = _words(given)
    has_end = any(mark in _FINAL for mark in text.rstrip()[-2:])
    return len(words) == 2 and not has_end and not words[0].text[0].isupper()


def _target(first: Pieces, second: Pieces, side: str) -> Target | Exclusion:
    before, after = _shared(first, second)
    ours, theirs = first[before : len(first) - after], second[before : len(second) - after]
    if not ours and not theirs:
        return _NONE
    if not _words(ours) and not _words(theirs):
        return _MARKS
    if not ours or not theirs:
        edit = "insertion" if theirs else "deletion"
        return _beside(edit, first, second, before, after, side)
    if moved := _moved(first, second, before, after):
        return moved
    if min(len(ours), len(theirs)) > 1 or not all(piece.is_word for piece in (*ours, *theirs)):
        return _SEVERAL
    return Target("substitution", _span(ours), _span(theirs))


def _by_words(first: Pieces, second: Pieces) -> Exclusion:
    """Return why sentences with several differences are left out: perhaps their words differ in one place, or none."""
    found = _target(_words(first), _words(second), "left")
    if found == _NONE:
        return _MARKS
    return Exclusion("punctuation differs too") if isinstance(found, Target) else _SEVERAL


def _shared(first: Pieces, second: Pieces) -> tuple[int, int]:
    """Return how many pieces two sentences share at their beginnings, and of the rest at their ends."""
    least = min(len(first), len(second))
    before = next((place for place in range(least) if not _same(first[place], second[place])), least)
    rest = least - before
    after = next((place for place in range(rest) if not _same(first[-1 - place], second[-1 - place])), rest)
    return before, after


def _beside(edit: str, first: Pieces, second: Pieces, before: int, after: int, side: str) -> Target | Exclusion:
    """Return the shared word on a side of what was put in or taken out, or all from one side to the other."""
    spans = []
    for given in (first, second):
        left, right = _words(given[:before])[-1:], _words(given[len(given) - after :])[:1]
        chosen = {"left": left, "right": right, "bracket": [*left, *right]}[side]
        if not chosen:
            return Exclusion(f"no shared word to the {side} of the edit")
        ends = (left or given[before:])[0], (right or given[: len(given) - after])[-1]
        spans.append(_span(ends) if side == "bracket" else chosen[0].span)
    return Target(edit, spans[0], spans[1])


def _is_turned(first: Pieces, second: Pieces) -> bool:
    """Tell whether two sentences have the same words, in whatever order."""
    counts = (Counter(_uncapitalised(each.text) for each in given) for given in (first, second))
    return next(counts) == next(counts)


def _moved(first: Pieces, second: Pieces, before: int, after: int) -> Target | Exclusion | None:
    """Return the part that stands elsewhere in the other sentence, from the shortest stretch that has it turned."""
    if not _is_turned(first, second):
        return None
    for start, end in _stretches(before, len(first) - after, len(first)):
        ours, theirs = first[start:end], second[start:end]
        for cut in range(1, len(ours)):
            if all(map(_same, [*ours[cut:], *ours[:cut]], theirs)):
                return _of_two(ours[:cut], ours[cut:], theirs)
    return None


def _stretches(start: int, end: int, length: int) -> Iterator[Span]:
    """Yield where the sentences differ, and then more and more around it.

    Two parts that begin or end alike, as in "the man the book", are longer than where the sentences differ.
    """
    for more in range(start + length - end + 1):
        for left in range(max(0, more - (length - end)), min(more, start) + 1):
            yield start - left, end + more - left


def _of_two(left: Pieces, right: Pieces, turned: Pieces) -> Target | Exclusion:
    """Return which of two parts that changed places was moved: the one of fewer words."""
    counts = len(_words(left)), len(_words(right))
    if 0 in counts:
        return _MARKS
    if counts[0] <= counts[1]:
        return Target("movement", _span(_words(left)), _span(_words(turned[len(right) :])))
    return Target("movement", _span(_words(right)), _span(_words(turned[: len(right)])))


def _span(given: Pieces) -> Span:
    return given[0].span[0], given[-1].span[1]


def _marked(better: Sentence, worse: Sentence, each: Contrast) -> Exclusion | None:
    """Return the exclusion of what someone marked as no sentence, by the tag ``fragment``."""
    is_marked = any(tags.get("fragment") for tags in (better.tags, worse.tags, each.tags))
    return _FRAGMENT if is_marked else None


def _member(each: Contrast, sentence: Sentence, role: str, span: Span) -> Sentence:
    return replace(sentence, id=f"{each.id} ({role})", regions={**sentence.regions, REGION: span})


def _none(excluded: Sequence[Exclusion]) -> str:
    if not excluded:
        return "it has no contrasts, and a target is where the sentences of a contrast differ"
    reasons = ", ".join(f"{reason} ({count})" for reason, count in counted(excluded).items())
    return f"none of its {len(excluded)} contrasts has one target: {reasons}"
