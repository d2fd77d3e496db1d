"""``complete``: what may follow the beginning of a sentence, token by token or word by word, and cloze probabilities.

A word of a subword model is a sequence of tokens. ``complete`` looks for the most probable words by a best-first
search: a word is complete where a token follows that begins another word, a punctuation mark, or the end, with the
probability of all these together; otherwise a token goes on with it. The search ends when no unfinished word can be
more probable than those that are listed, so that the list is exact, up to spellings of one word by several sequences of
tokens, which are added up as far as they were met. What the listed words cover of the probability is said.

Probabilities of words are conditional on a new word: the beginning ends with a complete word, so that a continuation of
this word, punctuation and the end of the sentence are left out, and said with their probability.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.api.interface.arguments import ModelLike, as_model, list_texts
from acceptability.display import Table, TableRow
from acceptability.errors import ModelError, SpecError, shorten
from acceptability.models import default_model
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import build_signature

# Within a word, besides letters and digits.
_INNER = frozenset("'’-‑")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PREFIXES_PER_PASS = 64
_MAX_PREFIXES = 6400
_UNITS = ("word", "token")


class Completions(Table):
    """The completions of a text, the most probable first, or the candidates in their order.

    Args:
        rows: A row for each: ``word`` or ``token``, ``probability``, ``surprisal_bits``; of candidates also ``share``.
        text: The beginning.
        model: The name of the model.
        unit: "word" or "token".
        covered: The probability of all listed words or tokens together.
        masses: The probabilities of what may follow: a new word, punctuation, more of the last word, the end.
        fills_mask: Whether the words are those at a mask in the text, and not after it.
        signature: What is needed to compute the list again.
        notes: Remarks for the reader.
    """

    def __init__(
        self,
        rows: Iterable[TableRow] = (),
        *,
        text: str = "",
        model: str = "",
        unit: str = "word",
        covered: float = 0.0,
        masses: Mapping[str, float] | None = None,
        fills_mask: bool = False,
        signature: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(rows)
        self.text, self.model, self.unit, self.covered = text, model, unit, covered
        self.masses, self.fills_mask, self.signature, self.notes = dict(masses or {}), fills_mask, signature, notes

    def footnotes(self) -> list[str]:
        """Return what stands below the table."""
        return list(self.notes)

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *self.notes])


def complete(
    text: str,
    model: ModelLike | None = None,
    *,
    candidates: Sequence[str] | str = (),
    by: str = "word",
    top: int = 10,
) -> Completions:
    """Return the most probable next words or tokens of a text, or the probabilities of given words: a cloze.

    Args:
        text: The beginning of a sentence, which ends with a complete word; may be empty. For a masked model a text with
            ``[MASK]`` in the place of the missing word.
        model: A causal, masked, recurrent or n-gram model, or its spec; by default ``mini-causal``, or ``trigram``
            without PyTorch.
        candidates: Words, each of which gets its probability in this place, and its share among them. Nothing else is
            listed then.
        by: "word", or "token" for the next tokens as they are, with no condition.
        top: How many are listed.

    The probability of a word is that it comes next, given that a new word comes next, and that it ends there. A masked
    model lists words of one token only; candidates of several tokens have them all masked.

    Raises:
        ModelError: The model has no distribution over the next token.

    >>> completions = complete("The keys to the", "trigram", top=2)
    >>> [row["word"] for row in completions]
    ['United', 'other']
    """
    if not isinstance(text, str):
        raise SpecError(f"complete: the beginning of the sentence is of type {type(text).__name__}; expected a text")
    if by not in _UNITS:
        raise SpecError(f"complete: by is {by!r}; expected 'word' or 'token'")
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= 1000:
        raise SpecError(f"complete: top is {top!r}; expected a number from 1 to 1000")
    if isinstance(candidates, str):
        words = [candidates]
    else:
        words = list_texts(candidates, "candidates") if len(candidates) else []
    if words and by == "token":
        raise SpecError("complete: candidates are words: leave out by='token'")
    if blank := [word for word in words if not word.strip()]:
        raise SpecError(f"complete: {blank[0]!r} is no word")
    name, loaded = as_model(default_model() if model is None else model)
    next_tokens = loaded.next_tokens
    if next_tokens is None:
        raise ModelError(
            f"{name} offers no distribution over the next token: completions need a causal, masked, recurrent or "
            "n-gram model"
        )
    place = _Place(name, loaded, next_tokens, text.rstrip())
    if words:
        return place.weigh_candidates([word.strip() for word in words])
    return place.list_tokens(top) if by == "token" else place.list_words(top)


@dataclass(frozen=True, eq=False)
class _TokenKinds:
    """What each token of a vocabulary does after a complete word.

    Args:
        texts: The tokens without the space before them.
        opens: Whether it begins a new word.
        goes_on: Whether it goes on with the word before it.
        is_space: Whether it is a space alone, after which a word begins.
    """

    texts: Sequence[str]
    opens: NDArray[np.bool_]
    goes_on: NDArray[np.bool_]
    is_space: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    is_named: NDArray[np.bool_]


def _classify_tokens(next_tokens: NextTokenModel, *, at_start: bool) -> _TokenKinds:
    """Return what each token does.

    Args:
        next_tokens: The model's tokens.
        at_start: Whether nothing stands before the place, so that a word need not begin with a space.
    """
    texts = next_tokens.token_texts
    bare = [text.strip() for text in texts]
    # A token that is a part of a character goes on with the character, or begins one, which is taken for a letter.
    is_letter = np.array([bool(text) and (text[0].isalnum() or text[0] == _REPLACEMENT) for text in bare])
    is_word = is_letter | np.array([bool(text) and text[0] in _INNER for text in bare])
    is_named = np.array([bool(text) for text in texts])
    if next_tokens.tokens_are_words:
        none = np.zeros(len(texts), bool)
        return _TokenKinds(bare, is_letter, none, none, _mark(len(texts), next_tokens.end_ids), is_named)
    # "##s" is how the vocabulary of BERT writes what goes on with a word, and all else begins one.
    is_piece = np.array([text.startswith("##") for text in bare])
    begins = np.array([text[:1].isspace() for text in texts])
    if next_tokens.fills_mask and is_piece.any():
        begins = ~is_piece
    is_space = np.array([bool(text) and text.isspace() for text in texts])
    begins = begins | at_start
    return _TokenKinds(
        bare,
        begins & is_letter & ~is_piece,
        ~begins & is_word,
        is_space & begins,
        _mark(len(texts), next_tokens.end_ids),
        is_named,
    )


def _mark(size: int, ids: Iterable[int]) -> NDArray[np.bool_]:
    marks = np.zeros(size, bool)
    marks[[token_id for token_id in ids if token_id < size]] = True
    return marks


@dataclass(order=True)
class _Beginning:
    """The beginning of a word: what it costs, its tokens, and its text."""

    surprisal: float
    ids: tuple[int, ...] = field(compare=False)
    text: str = field(compare=False)


@dataclass(frozen=True, eq=False)
class _Place:
    """The place after a text, or at its mask, in which a model expects words.

    Args:
        name: The name of the model.
        model: The model.
        tokens: Its distributions.
        text: The text.
    """

    name: str
    model: Model
    tokens: NextTokenModel
    text: str

    def list_tokens(self, top: int) -> Completions:
        """Return the most probable tokens."""
        logprobs = self._read_first(self.tokens.encode_prefix(self.text))
        texts = self.tokens.token_texts
        best = np.argsort(-logprobs, kind="stable")[:top]
        rows = [_make_row("token", texts[at] or f"(special token {at})", float(logprobs[at])) for at in best.tolist()]
        covered = float(np.exp(logprobs[best]).sum())
        notes = (f"the {len(rows)} tokens have {covered:.1%} of the probability",)
        return self._make(rows, "token", covered, {}, notes, {"by": "token", "top": str(top)})

    def list_words(self, top: int) -> Completions:
        """Return the most probable words."""
        prefix = self.tokens.encode_prefix(self.text)
        first = self._read_first(prefix)
        kinds = _classify_tokens(self.tokens, at_start=not self.text)
        masses = self._sum_masses(first, kinds)
        if self.tokens.tokens_are_words or self.tokens.fills_mask:
            words: dict[str, float] = {}
            for at in np.flatnonzero(kinds.opens).tolist():
                known = words.get(kinds.texts[at], -math.inf)
                words[kinds.texts[at]] = float(np.logaddexp(known, float(first[at])))
            is_exact = True
        else:
            words, is_exact = self._search_words(prefix, first, kinds, top)
        scale = math.log(masses["new word"])
        best = sorted(words, key=lambda word: -words[word])[:top]
        rows = [_make_row("word", word, min(words[word] - scale, 0.0)) for word in best]
        covered = math.fsum(math.exp(words[word] - scale) for word in best)
        notes = [f"the {len(rows)} words have {covered:.1%} of the probability of a new word", _describe_masses(masses)]
        if self.tokens.fills_mask:
            notes.append("words of one token only: a masked model does not say how many tokens are missing")
        if not is_exact:
            notes.append(f"the search ended after {_MAX_PREFIXES:,} beginnings of words: others may be as probable")
        return self._make(rows, "word", covered, masses, tuple(notes), {"by": "word", "top": str(top)})

    def weigh_candidates(self, words: Sequence[str]) -> Completions:
        """Return the probability of each candidate."""
        unique = list(dict.fromkeys(words))
        masses: dict[str, float] = {}
        if self.tokens.fills_mask:
            logprobs = self._score_in_mask(unique)
        else:
            prefix = self.tokens.encode_prefix(self.text)
            kinds = _classify_tokens(self.tokens, at_start=not self.text)
            masses = self._sum_masses(self._read_first(prefix), kinds)
            logprobs = [
                None if logprob is None else logprob - math.log(masses["new word"])
                for logprob in self._score_after(prefix, kinds, unique)
            ]
        known = [math.exp(logprob) for logprob in logprobs if logprob is not None]
        total = math.fsum(known)
        rows = [
            _make_row("word", word, logprob)
            | {"share": None if logprob is None or not total else math.exp(logprob) / total}
            for word, logprob in zip(unique, logprobs, strict=True)
        ]
        rows = sorted(rows, key=lambda row: -(row["probability"] if row["probability"] is not None else -1.0))
        notes = [f"the {len(rows)} words have {total:.2%} of the probability" + (" of a new word" if masses else "")]
        notes += [_describe_masses(masses)] if masses else []
        if lacking := [word for word, logprob in zip(unique, logprobs, strict=True) if logprob is None]:
            notes.append(f"not in the model's vocabulary: {', '.join(lacking)}")
        fields = {"candidates": json.dumps(unique, ensure_ascii=False)}
        return self._make([TableRow(row) for row in rows], "word", total, masses, tuple(notes), fields)

    def _read_first(self, prefix: Sequence[int]) -> NDArray[np.float64]:
        """Return the log-probabilities of the tokens in the place."""
        return np.asarray(self.tokens.next_logprobs([prefix])[0], np.float64)

    def _sum_masses(self, first: NDArray[np.float64], kinds: _TokenKinds) -> dict[str, float]:
        """Return the probabilities of what may come in the place; an error if that is no word."""
        masses = _sum_masses(first, kinds)
        if not masses["new word"]:
            raise ModelError(f"{self.name} expects no new word after {shorten(self.text)!r}")
        return masses

    def _search_words(
        self, prefix: Sequence[int], first: NDArray[np.float64], kinds: _TokenKinds, top: int
    ) -> tuple[dict[str, float], bool]:
        """Return the log-probabilities of words, with the most probable among them, and whether none can be missing."""
        heap: list[_Beginning] = []
        words: dict[str, float] = {}
        start = np.flatnonzero(kinds.opens | kinds.is_space)
        # Far more beginnings than are needed: a word is at most as probable as its beginning.
        for at in start[np.argsort(-first[start], kind="stable")][: max(50 * top, 2000)].tolist():
            heapq.heappush(heap, _Beginning(-float(first[at]), (at,), kinds.texts[at]))
        looked_at = 0
        while heap and looked_at < _MAX_PREFIXES:
            if -heap[0].surprisal <= _find_kth(words, top):
                return words, True
            batch = [heapq.heappop(heap) for _ in range(min(len(heap), _PREFIXES_PER_PASS))]
            looked_at += len(batch)
            following = self.tokens.next_logprobs([[*prefix, *one.ids] for one in batch])
            for beginning, row in zip(batch, following.astype(np.float64), strict=True):
                # After a space alone, a letter without a space goes on with the word that begins there.
                goes_on = kinds.goes_on
                ended = float(np.log(np.exp(row[~goes_on]).sum())) - beginning.surprisal
                if beginning.text and _REPLACEMENT not in beginning.text:
                    words[beginning.text] = float(np.logaddexp(words.get(beginning.text, -np.inf), ended))
                bound = _find_kth(words, top) + beginning.surprisal
                for at in np.flatnonzero(goes_on & (row > bound)).tolist():
                    ids = (*beginning.ids, at)
                    surprisal = beginning.surprisal - float(row[at])
                    heapq.heappush(heap, _Beginning(surprisal, ids, self.tokens.decode(ids)))
        return words, not heap

    def _score_after(self, prefix: Sequence[int], kinds: _TokenKinds, words: Sequence[str]) -> list[float | None]:
        """Return the log-probability of each word after the text, with that of its end."""
        rows = [self._encode_after(prefix, word) for word in words]
        prefixes = [[*prefix, *ids[:length]] for ids in rows for length in range(len(ids) + 1)]
        distributions = self._iter_distributions(prefixes)
        found: list[float | None] = []
        for ids in rows:
            own = [next(distributions) for _ in range(len(ids) + 1)]
            logprob = math.fsum(float(row[at]) for row, at in zip(own, ids, strict=False))
            if self.tokens.tokens_are_words:
                texts = [self.tokens.token_texts[at] for at in ids]
                is_known = all(texts) and len(ids) > 0
                found.append(logprob if is_known else None)
            else:
                found.append(logprob + float(np.log(np.exp(own[-1][~kinds.goes_on]).sum())))
        return found

    def _iter_distributions(self, prefixes: Sequence[Sequence[int]]) -> Iterator[NDArray[np.float64]]:
        """Yield the log-probabilities of all tokens after each prefix."""
        # Of a thousand candidates together, the distributions over a large vocabulary would take gigabytes.
        for start in range(0, len(prefixes), _PREFIXES_PER_PASS):
            yield from self.tokens.next_logprobs(prefixes[start : start + _PREFIXES_PER_PASS]).astype(np.float64)

    def _encode_after(self, prefix: Sequence[int], word: str) -> list[int]:
        """Return the tokens of a word after the text."""
        ids = self.tokens.encode_prefix(f"{self.text} {word}" if self.text else word)
        if list(ids[: len(prefix)]) != list(prefix) or len(ids) == len(prefix):
            raise ModelError(
                f"{self.name} splits {shorten(self.text)!r} otherwise when {word!r} follows, so that the word has no "
                "probability of its own"
            )
        return list(ids[len(prefix) :])

    def _score_in_mask(self, words: Sequence[str]) -> list[float | None]:
        """Return the log-probability of each word in the place of the mask."""
        # Imported here, since it needs torch.
        from acceptability.models.predictions.masked_predictor import make_masked_query

        self.tokens.encode_prefix(self.text)
        outputs = self.model.run(self.model.encode([make_masked_query(self.text, word) for word in words]))
        return [math.fsum(output.logprobs.tolist()) for output in outputs]  # type: ignore[union-attr]

    def _make(
        self,
        rows: Sequence[TableRow],
        unit: str,
        covered: float,
        masses: Mapping[str, float],
        notes: tuple[str, ...],
        fields: Mapping[str, str],
    ) -> Completions:
        signature = build_signature(
            "complete",
            {
                "text": json.dumps(self.text, ensure_ascii=False),
                "model": self.model.signature,
                **fields,
                "acceptability": __version__,
            },
        )
        return Completions(
            rows,
            text=self.text,
            model=self.name,
            unit=unit,
            covered=covered,
            masses=masses,
            fills_mask=self.tokens.fills_mask,
            signature=signature,
            notes=notes,
        )


def _make_row(unit: str, text: str, logprob: float | None) -> TableRow:
    known = logprob is not None
    return TableRow(
        {
            unit: text,
            "probability": math.exp(logprob) if logprob is not None else None,
            "surprisal_bits": -logprob / math.log(2) if known and logprob is not None else None,
        }
    )


def _find_kth(words: Mapping[str, float], top: int) -> float:
    """Return the log-probability of the last word that would be listed; -inf while there are too few."""
    return heapq.nlargest(top, words.values())[-1] if len(words) >= top else -math.inf


def _sum_masses(logprobs: NDArray[np.float64], kinds: _TokenKinds) -> dict[str, float]:
    """Return the probabilities of what may come in a place."""
    probabilities = np.exp(logprobs)
    new = float(probabilities[kinds.opens | kinds.is_space].sum())
    more = float(probabilities[kinds.goes_on].sum())
    end = float(probabilities[kinds.ends].sum())
    rest = ~(kinds.opens | kinds.is_space | kinds.goes_on | kinds.ends)
    return {
        "new word": new,
        "more of the last word": more,
        "end": end,
        "punctuation": float(probabilities[rest & kinds.is_named].sum()),
        "unknown words and special tokens": float(probabilities[rest & ~kinds.is_named].sum()),
    }


def _describe_masses(masses: Mapping[str, float]) -> str:
    shown = [f"{name} {mass:.1%}" for name, mass in masses.items() if mass >= 0.0005]
    return f"what may come here: {', '.join(shown)}"
