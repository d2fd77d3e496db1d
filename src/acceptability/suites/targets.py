"""Targets of contrasts: the words to mask, where the two sentences differ (Park, Park and Song 2021).

Words are separated by spaces. Punctuation at their ends is split off and compared mark by mark. The capital of
the first word of a sentence is ignored when it is compared with a word in another position.

- A substitution masks the differing words; in one of the sentences, this must be a single word.
- A movement masks the moved part in both positions. Of two parts that change places, the one with fewer words
  counts as moved; if they have equally many, the one that comes first in the better sentence.
- An insertion or a deletion masks the shared word to the left of the edit in both sentences; with
  ``side='right'`` the one to its right; with ``side='bracket'`` everything from the one to the other.
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

TARGET_REGION = "target"
"""The name of the region that holds a sentence's target."""


@dataclass(frozen=True, slots=True)
class Target:
    """The edit that turns the better sentence of a contrast into the worse one, and the spans to mask.

    Args:
        edit: "substitution", "insertion", "deletion" or "movement".
        better, worse: The masked characters, (start, end).
    """

    edit: str
    better: Span
    worse: Span


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The reason why a contrast is left out; ``contrast`` is its id, empty for a bare pair of texts."""

    reason: str
    contrast: str = ""


_IS_FRAGMENT = Exclusion("no whole sentence")

_NO_DIFFERENCE = Exclusion("the same words")

_ONLY_MARKS = Exclusion("only punctuation differs")

_SEVERAL_DIFFERENCES = Exclusion("more than one difference")


def add_targets(suite: Suite, *, side: str = "left") -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return a suite whose sentences have the region "target", and the contrasts that were left out.

    A sentence may be in several contrasts with different targets, so each contrast gets two sentences of
    its own. A contrast gets the tags ``edit`` and ``contrast`` (its id in the original suite). Where the
    tags of its sentences differ, it gets those of the worse one.

    Args:
        side: What an insertion or a deletion masks: "left", "right" or "bracket".
    """
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    excluded: list[Exclusion] = []
    for contrast in suite.contrasts:
        better, worse = suite.by_id[contrast.better], suite.by_id[contrast.worse]
        target = _exclude_fragment(better, worse, contrast) or find_target(better.text, worse.text, side=side)
        if isinstance(target, Exclusion):
            excluded.append(replace(target, contrast=contrast.id))
            continue
        members = (
            _build_member(contrast, better, "better", target.better),
            _build_member(contrast, worse, "worse", target.worse),
        )
        sentences += members
        # The tags of the worse sentence say what is wrong with it, which is what contrasts are grouped by.
        tags = {**worse.tags, **contrast.tags, "edit": target.edit, "contrast": contrast.id}
        contrasts.append(Contrast(members[0].id, members[1].id, tags))
    if not contrasts:
        raise SuiteError(f"suite {suite.name!r}: {_explain_no_targets(excluded)}")
    targeted = replace(
        suite, name=f"{suite.name}+targets({side})", sentences=tuple(sentences), contrasts=tuple(contrasts)
    )
    return targeted, tuple(excluded)


def _exclude_fragment(better: Sentence, worse: Sentence, contrast: Contrast) -> Exclusion | None:
    """Return the exclusion of a contrast that is marked as not a sentence by the tag ``fragment``."""
    is_marked = any(tags.get("fragment") for tags in (better.tags, worse.tags, contrast.tags))
    return _IS_FRAGMENT if is_marked else None


def _build_member(contrast: Contrast, sentence: Sentence, role: str, span: Span) -> Sentence:
    return replace(sentence, id=f"{contrast.id} ({role})", regions={**sentence.regions, TARGET_REGION: span})


def _explain_no_targets(excluded: Sequence[Exclusion]) -> str:
    if not excluded:
        return "it has no contrasts, and a target is where the sentences of a contrast differ"
    reasons = ", ".join(f"{reason} ({count})" for reason, count in count_exclusions(excluded).items())
    return f"none of its {len(excluded)} contrasts has one target: {reasons}"


def count_exclusions(exclusions: Sequence[Exclusion]) -> dict[str, int]:
    """Return how many contrasts were left out for each reason, the most frequent first.

    >>> count_exclusions([Exclusion("a"), Exclusion("b"), Exclusion("b")])
    {'b': 2, 'a': 1}
    """
    return dict(Counter(exclusion.reason for exclusion in exclusions).most_common())


def find_target(better: str, worse: str, *, side: str = "left") -> Target | Exclusion:
    """Return the target of a pair of sentences, or the reason why it has none.

    Args:
        side: For insertions and deletions: "left", "right" or "bracket".


    >>> find_target("The girl cut herself.", "The girl cut himself.")
    Target(edit='substitution', better=(13, 20), worse=(13, 20))
    >>> find_target("Who left?", "Left who?").edit
    'movement'
    >>> find_target("It seems that Monday she ran.", "Monday seems that she ran.").reason
    'more than one difference'
    """
    if side not in SIDES:
        raise SuiteError(f"side is {side!r}; expected one of {', '.join(map(repr, SIDES))}")
    first, second = split_surface_tokens(better), split_surface_tokens(worse)
    if min(len(_select_words(first)), len(_select_words(second))) < 2:
        return Exclusion("a single word")
    if _is_fragment(first, better) or _is_fragment(second, worse):
        return _IS_FRAGMENT
    target = _classify_edit(first, second, side)
    return _explain_by_words(first, second) if target == _SEVERAL_DIFFERENCES else target


def _classify_edit(first: SurfaceTokens, second: SurfaceTokens, side: str) -> Target | Exclusion:
    before, after = _count_shared_ends(first, second)
    ours, theirs = first[before : len(first) - after], second[before : len(second) - after]
    if not ours and not theirs:
        return _NO_DIFFERENCE
    if not _select_words(ours) and not _select_words(theirs):
        return _ONLY_MARKS
    if not ours or not theirs:
        edit = "insertion" if theirs else "deletion"
        return _find_adjacent_word(edit, first, second, before, after, side)
    if moved := _find_movement(first, second, before, after):
        return moved
    if min(len(ours), len(theirs)) > 1 or not all(token.is_word for token in (*ours, *theirs)):
        return _SEVERAL_DIFFERENCES
    return Target("substitution", _covering_span(ours), _covering_span(theirs))


def _explain_by_words(first: SurfaceTokens, second: SurfaceTokens) -> Exclusion:
    """Return why a pair with several differences is left out: perhaps all but one of them are punctuation."""
    target = _classify_edit(_select_words(first), _select_words(second), "left")
    if target == _NO_DIFFERENCE:
        return _ONLY_MARKS
    return Exclusion("punctuation differs too") if isinstance(target, Target) else _SEVERAL_DIFFERENCES


def _count_shared_ends(first: SurfaceTokens, second: SurfaceTokens) -> tuple[int, int]:
    """Return the lengths of the shared prefix and, of the remaining tokens, of the shared suffix."""
    least = min(len(first), len(second))
    before = next((index for index in range(least) if not _is_same_token(first[index], second[index])), least)
    # The suffix must not overlap the prefix: both would claim the "b" that "a b" shares with "a b b".
    rest = least - before
    after = next((index for index in range(rest) if not _is_same_token(first[-1 - index], second[-1 - index])), rest)
    return before, after


def _find_adjacent_word(
    edit: str, first: SurfaceTokens, second: SurfaceTokens, before: int, after: int, side: str
) -> Target | Exclusion:
    """Return the shared word beside an insertion or deletion as the target, or everything between the two."""
    spans = []
    for tokens in (first, second):
        left, right = _select_words(tokens[:before])[-1:], _select_words(tokens[len(tokens) - after :])[:1]
        neighbours = {"left": left, "right": right, "bracket": [*left, *right]}[side]
        if not neighbours:
            return Exclusion(f"no shared word to the {side} of the edit")
        ends = (left or tokens[before:])[0], (right or tokens[: len(tokens) - after])[-1]
        spans.append(_covering_span(ends) if side == "bracket" else neighbours[0].span)
    return Target(edit, spans[0], spans[1])


def _find_movement(first: SurfaceTokens, second: SurfaceTokens, before: int, after: int) -> Target | Exclusion | None:
    """Return the moved part as the target: within the shortest stretch that is a rotation of the other sentence's."""
    if not _is_reordered(first, second):
        return None
    for start, end in _iter_spans(before, len(first) - after, len(first)):
        ours, theirs = first[start:end], second[start:end]
        for cut in range(1, len(ours)):
            # Two adjacent parts that change places make the second stretch a rotation of the first.
            if all(map(_is_same_token, [*ours[cut:], *ours[:cut]], theirs)):
                return _choose_moved_part(ours[:cut], ours[cut:], theirs)
    return None


def _is_reordered(first: SurfaceTokens, second: SurfaceTokens) -> bool:
    """Return whether two sentences have the same tokens in any order."""
    counts = (Counter(_uncapitalise(token.text) for token in tokens) for tokens in (first, second))
    return next(counts) == next(counts)


def _iter_spans(start: int, end: int, length: int) -> Iterator[Span]:
    """Yield the span in which the sentences differ, then ever longer spans around it.

    Parts that start or end with the same word, as in "the man the book", reach beyond the differing span.
    """
    for extra in range(start + length - end + 1):
        for left in range(max(0, extra - (length - end)), min(extra, start) + 1):
            yield start - left, end + extra - left


def _choose_moved_part(left: SurfaceTokens, right: SurfaceTokens, reordered: SurfaceTokens) -> Target | Exclusion:
    """Return the target of a movement: of two parts that changed places, the one with fewer words."""
    counts = len(_select_words(left)), len(_select_words(right))
    if 0 in counts:
        return _ONLY_MARKS
    if counts[0] <= counts[1]:
        return Target(
            "movement", _covering_span(_select_words(left)), _covering_span(_select_words(reordered[len(right) :]))
        )
    return Target(
        "movement", _covering_span(_select_words(right)), _covering_span(_select_words(reordered[: len(right)]))
    )


def _covering_span(tokens: SurfaceTokens) -> Span:
    return tokens[0].span[0], tokens[-1].span[1]


class SurfaceToken(NamedTuple):
    """A word or a punctuation mark with its span; ``is_first`` marks the first word of a sentence."""

    text: str
    span: Span
    is_word: bool
    is_first: bool


SurfaceTokens: TypeAlias = Sequence[SurfaceToken]


def split_surface_tokens(text: str) -> list[SurfaceToken]:
    """Return the words and the punctuation marks of a text.

    >>> [piece.text for piece in split_surface_tokens("She isn't (here).")]
    ['She', "isn't", '(', 'here', ')', '.']
    """
    tokens: list[SurfaceToken] = []
    is_first = True
    for match in finditer(r"\S+", text):
        for start, end in _split_marks(match[0]):
            is_word = not _is_mark(match[0][start])
            span = match.start() + start, match.start() + end
            tokens.append(SurfaceToken(text[slice(*span)], span, is_word, is_word and is_first))
            is_first = is_first and not is_word
    return tokens


def _split_marks(chunk: str) -> Iterator[Span]:
    """Yield the spans of the marks before a word, of the word, and of the marks after it."""
    # Marks inside a word, as in "isn't" or "well-known", belong to it.
    inner = [position for position, character in enumerate(chunk) if not _is_mark(character)]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(chunk), len(chunk))
    yield from ((position, position + 1) for position in range(first))
    if inner:
        yield first, last
    yield from ((position, position + 1) for position in range(last, len(chunk)))


def _is_mark(character: str) -> bool:
    # All categories of punctuation and symbols, of every script.
    return unicodedata.category(character)[0] in "PS"


def _select_words(tokens: SurfaceTokens) -> list[SurfaceToken]:
    return [token for token in tokens if token.is_word]


def _is_same_token(first: SurfaceToken, second: SurfaceToken) -> bool:
    if first.text == second.text:
        return True
    # Only the first word of a sentence has a capital because of its position; elsewhere "May" and "may" differ.
    is_start = first.is_first or second.is_first
    return is_start and _uncapitalise(first.text) == _uncapitalise(second.text)


def _uncapitalise(text: str) -> str:
    return text[:1].lower() + text[1:]


_FINAL_MARKS = ".?!…。？！"


def _is_fragment(tokens: SurfaceTokens, text: str) -> bool:
    """Return whether a text is two words without initial capital and final punctuation, such as "his book"."""
    # Closing quotation marks may follow the final mark, so the last two characters are checked.
    words = _select_words(tokens)
    has_end = any(mark in _FINAL_MARKS for mark in text.rstrip()[-2:])
    return len(words) == 2 and not has_end and not words[0].text[0].isupper()
