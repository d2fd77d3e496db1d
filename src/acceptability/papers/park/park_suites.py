"""The three suites of Park, Park and Song (2021), as far as they are available, and the error types of the third.

Suite I is a user's file of pairs. Without one, 98 pairs of our own replace DeKeyser's, which are unpublished; they are
called ours. The paper reports 98 pairs of 11 kinds and names some of the kinds, but not how many pairs each has. Ours
have nine each, word order eight.

Suite II is of pairs of sentences from CoLA's four syntax textbooks. The authors wrote an acceptable counterpart to many
unacceptable sentences; these are unpublished. So a pair counts here only if both of its sentences are in the same book
and

- they have one target (``suites.targets``): a substitution, an insertion or deletion, a movement;
- they differ in few words: one for one, or two more in one of them; a movement may be longer;
- they share at least two words.

Of several acceptable sentences, the one that differs in the fewest words is chosen, then the first.

Suite III is the pairs of Linguistic Inquiry in LI-Adger. ``park_types.toml``, which is ours, assigns their examples to
the 22 error types of Table 4, with the evidence. The magnitude estimates that section 3.3 prints are the check.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from acceptability.papers.cola.corpus_tables import SOURCES
from acceptability.suites import load_suite
from acceptability.suites.targets import Exclusion, Target, find_target, split_surface_tokens
from acceptability.types import Contrast, Sentence, Suite

OURS = "ours"
INQUIRY = "Sprouse et al. (2013)"
DEKEYSER = "DeKeyser (2000)"
BOOK_TOTAL = "Subtotal of II"

BOOKS = ("ad03", "c_13", "m_02", "sks13")
"""As CoLA's files name them: Adger (2003), Carnie (2013), Miller (2002), Sportiche et al. (2013)."""

# The labels of CoLA's test sets are not public.
_PUBLIC_SUITES = ("cola/train", "cola/in_domain_dev", "cola/out_of_domain_dev")
_MAX_DIFFERENT_WORDS = 2
_MIN_SHARED_WORDS = 2
_DUPLICATE_REASON = "the unacceptable sentence stands in the book before"
_NO_PARTNER_REASON = "no acceptable sentence of the book differs from the unacceptable one in one place"
_TOO_DIFFERENT_REASON = (
    f"acceptable sentences differ in one place, but in more than {_MAX_DIFFERENT_WORDS} words, "
    f"or share fewer than {_MIN_SHARED_WORDS}"
)


@dataclass(frozen=True, eq=False)
class ParkSuite:
    """One of the three suites.

    Args:
        name: "I", "II" or "III".
        source: The source of its sentences.
        pairs: Its contrasts, before any is excluded for lack of a target.
        original_counts: The number of sentences by row of Table 1, before pairing.
        unpaired: Unacceptable sentences without an acceptable partner.
    """

    name: str
    source: str
    pairs: Suite
    original_counts: Mapping[str, int]
    unpaired: tuple[Exclusion, ...] = ()

    def find_row(self, book: str | None) -> str:
        """Return the row of Table 1 in which a contrast counts: its book's, or the only row of the suite."""
        return book or next(iter(self.original_counts))


def load_park_suites(inquiry: Suite, suite_i: str | Path | None = None) -> tuple[ParkSuite, ParkSuite, ParkSuite]:
    """Return suites I, II and III.

    Args:
        inquiry: The sentences and pairs of Linguistic Inquiry.
        suite_i: A file of pairs for suite I, in place of ours.
    """
    first_pairs = load_suite(str(suite_i)) if suite_i else load_own_pairs()
    first_suite = ParkSuite(
        "I", Path(suite_i).name if suite_i else OURS, first_pairs, {DEKEYSER: len(first_pairs.sentences)}
    )
    sentences = load_textbook_sentences()
    pairs, unpaired = pair_textbook_sentences(sentences)
    books = sorted({sentence.tags["book"] for sentence in sentences})
    # The paper's counts are higher, because they include CoLA's test sentences.
    original = {book: sum(sentence.tags["book"] == book for sentence in sentences) for book in books}
    second_suite = ParkSuite("II", "CoLA's public files", pairs, original, unpaired)
    third_suite = ParkSuite("III", "LI-Adger", inquiry, {INQUIRY: len(inquiry.sentences)})
    return first_suite, second_suite, third_suite


def load_own_pairs() -> Suite:
    """Return our 98 pairs, which replace DeKeyser's; the tag ``kind`` is the construction that is contrasted.

    >>> suite = load_own_pairs()
    >>> len(suite.contrasts), suite.contrasts[0].tags["kind"]
    (98, 'past_tense')
    """
    # ``load_suite`` needs a path, which a package inside a zip archive does not have by itself.
    with as_file(files("acceptability.papers.park").joinpath("park_ours.jsonl")) as path:
        return load_suite(str(path))


@dataclass(frozen=True)
class _TokenizedSentence:
    """A sentence and its words, the first of them without its capital."""

    sentence: Sentence
    words: tuple[str, ...]

    @cached_property
    def sorted_words(self) -> tuple[str, ...]:
        """The same for each order of the words."""
        return tuple(sorted(self.words))


def load_textbook_sentences() -> list[Sentence]:
    """Return the sentences of the four books in CoLA's public files; the tag ``book`` is the paper's name of a book."""
    return [
        Sentence(
            sentence.id,
            sentence.text,
            label=sentence.label,
            tags={**sentence.tags, "book": SOURCES[sentence.tags["source"]]},
        )
        for name in _PUBLIC_SUITES
        for sentence in load_suite(name).sentences
        if sentence.tags["source"] in BOOKS
    ]


def pair_textbook_sentences(sentences: Sequence[Sentence]) -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return the pairs, and the reason for each unacceptable sentence that is in none.

    Args:
        sentences: Sentences with the tag ``book``.

    Returns:
        A suite with the pairs, and the exclusions, whose ``contrast`` is the id of the sentence.
    """
    contrasts: list[Contrast] = []
    excluded: list[Exclusion] = []
    for book in dict.fromkeys(sentence.tags["book"] for sentence in sentences):
        tokenized = [
            _TokenizedSentence(sentence, _split_words(sentence.text))
            for sentence in sentences
            if sentence.tags["book"] == book
        ]
        good = [candidate for candidate in tokenized if candidate.sentence.label == 1]
        # Textbooks repeat their examples; a repeated one would count its pair twice.
        seen = set()
        for bad in (candidate for candidate in tokenized if candidate.sentence.label == 0):
            partner = Exclusion(_DUPLICATE_REASON) if bad.words in seen else _find_partner(bad, good)
            seen.add(bad.words)
            if isinstance(partner, Exclusion):
                excluded.append(Exclusion(partner.reason, bad.sentence.id))
            else:
                contrasts.append(Contrast(partner.id, bad.sentence.id, {"book": book}))
    return Suite("park/II", tuple(sentences), tuple(contrasts)), tuple(excluded)


def _find_partner(bad: _TokenizedSentence, good: Sequence[_TokenizedSentence]) -> Sentence | Exclusion:
    """Return the acceptable sentence that differs least, or an exclusion with the reason why there is none."""
    candidates = list(_find_near_matches(bad, good))
    # Sorted by the index last, so that of equally near sentences the first in the book is chosen.
    close_candidates = [(size, index) for size, index, is_close in candidates if is_close]
    if close_candidates:
        return good[min(close_candidates)[1]].sentence
    return Exclusion(_TOO_DIFFERENT_REASON if candidates else _NO_PARTNER_REASON)


def _find_near_matches(bad: _TokenizedSentence, good: Sequence[_TokenizedSentence]) -> Iterator[tuple[int, int, bool]]:
    """Yield the acceptable sentences with one target: the number of differing words, the index, whether it is close."""
    for index, candidate in enumerate(good):
        shared = _count_shared_words(candidate.words, bad.words)
        n_own_words, n_other_words = len(candidate.words) - shared, len(bad.words) - shared
        is_reordered = n_own_words == n_other_words and candidate.sorted_words == bad.sorted_words
        # A necessary condition of a target that is cheap to test: it makes the search about 25 times as fast.
        if not is_reordered and min(n_own_words, n_other_words) > 1:
            continue
        if isinstance(find_target(candidate.sentence.text, bad.sentence.text), Target):
            is_few = is_reordered or n_own_words + n_other_words <= _MAX_DIFFERENT_WORDS
            yield max(n_own_words, n_other_words), index, is_few and (shared >= _MIN_SHARED_WORDS or is_reordered)


def _split_words(text: str) -> tuple[str, ...]:
    # The capital depends on the position alone: with it, a fronted phrase would differ from the same one elsewhere.
    words = [piece.text for piece in split_surface_tokens(text) if piece.is_word]
    return (words[0][:1].lower() + words[0][1:], *words[1:]) if words else ()


def _count_shared_words(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words in the longest common prefix and, in what follows it, the longest common suffix.

    >>> _count_shared_words(["he", "always", "eats"], ["he", "eats"])
    2
    """
    shorter_length = min(len(first), len(second))
    prefix_length = next((index for index in range(shorter_length) if first[index] != second[index]), shorter_length)
    # A word of the prefix must not be counted again in the suffix, as in "he he" against "he".
    rest = shorter_length - prefix_length
    return prefix_length + next((index for index in range(rest) if first[-1 - index] != second[-1 - index]), rest)


RATING_TOLERANCE = 0.02
"""How far a mean rating may be from the printed one, as the paper's means may be over fewer pairs than ours."""


@dataclass(frozen=True)
class RatedErrorType:
    """An error type of Table 4, with the mean human ratings (z) of its sentences.

    Args:
        name: The type, with its number in Table 4.
        ids: The examples of Linguistic Inquiry that belong to it, without item numbers.
        evidence: Why they belong to it, in the terms that ``park_types.toml`` explains.
        acceptable: The mean rating of its acceptable sentences.
        unacceptable: The mean rating of its unacceptable sentences.
        n_pairs: The number of its contrasts, with or without a target.
    """

    name: str
    ids: tuple[str, ...]
    evidence: str
    acceptable: float
    unacceptable: float
    n_pairs: int

    @property
    def is_fitted(self) -> bool:
        """Whether the examples were chosen so that their mean rating is the printed one."""
        return "fitted" in self.evidence


def read_example_types() -> Mapping[str, str]:
    """Return the error type of each example that has one.

    >>> read_example_types()["34.1.phillips.96a.*"]
    '20 VP fronting'
    """
    example_types: dict[str, str] = _read_types_file()["types"]
    return example_types


def compute_rated_types(suite: Suite) -> list[RatedErrorType]:
    """Return the 22 types with the ratings of their sentences, in the order of Table 4."""
    example_types, evidence = read_example_types(), _read_types_file()["evidence"]
    rated = []
    # The file lists the types in the order of Table 4.
    for name in evidence:
        ids = tuple(example for example, example_type in example_types.items() if example_type == name)
        chosen = [contrast for contrast in suite.contrasts if suite.by_id[contrast.worse].tags["type"] in ids]
        better, worse = (
            _compute_mean_rating(suite, [getattr(contrast, role) for contrast in chosen])
            for role in ("better", "worse")
        )
        rated.append(RatedErrorType(name, ids, evidence[name], better, worse, len(chosen)))
    return rated


def _compute_mean_rating(suite: Suite, names: list[str]) -> float:
    return float(np.mean([rating for name in names if (rating := suite.by_id[name].rating) is not None]))


def _read_types_file() -> dict[str, dict[str, str]]:
    text = files("acceptability.papers.park").joinpath("park_types.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
