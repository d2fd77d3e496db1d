"""Words and sentences: splitting text into words, joining them, vocabularies, log-probabilities per word.

Text is split by one of four rules, which a word model uses in training and in scoring:

- ``spaces``: a word is what spaces separate.
- ``words``: runs of letters and digits with inner apostrophes or hyphens; punctuation is left out.
- ``punctuation``: such runs, and each punctuation mark.
- ``split``: for word models that are trained on plain text. Runs of letters and digits; ``n't``, ``'s``, ``'m``,
  ``'d``, ``'re``, ``'ve`` and ``'ll`` are words of their own; numbers keep points and commas between digits, and single
  letters with points (``U.S.``, ``e.g.``) stay together; several points are one word, and so is every other mark.
  ``<unk>``, which replaces rare words in some corpora, is one word: the unknown one.

All rules but ``spaces`` split a script that writes vowels as combining marks, which are no letters to ``re``.

``join_words`` is the inverse. Spaces are lost when text is split, so the result is a good guess: no space before a
comma or ``n't``, none after an opening bracket, none around a hyphen or dash. Straight quotation marks open and close
in turn; a lone apostrophe closes what an earlier one opened, or else follows a word in s, as in ``the cats' food``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from acceptability.errors import ModelError
from acceptability.types import Span, TokenScores

VOCABULARY_FILE = "vocabulary.json"
UNKNOWN, START, END = 0, 1, 2
SPECIAL_WORDS = ("<unk>", "<s>", "</s>")
"""The first three entries of every vocabulary: the unknown word, and the start and the end of a sentence."""

# Alternatives are tried from left to right, so longer and more specific words come first.
SPLIT_RULES: Mapping[str, str] = {
    "spaces": r"\S+",
    "words": r"[^\W_]+(?:['’-][^\W_]+)*",
    "punctuation": r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_",
    "split": (
        r"<unk>"
        r"|(?:[^\W\d_]\.){2,}"
        r"|\d+(?:[.,]\d+)+"
        r"|[^\W_]+(?=[nN]['’][tT](?![^\W_]))|[nN]['’][tT](?![^\W_])"
        r"|['’](?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])(?![^\W_])"
        r"|[^\W_]+|\.{2,}|[^\w\s]|_"
    ),
}

_CLOSING = re.compile(r"[,;:!?)\]}%”…°]|\.+|[nN]['’][tT]|['’](?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])")
_OPENING = frozenset("([{“‘$£€#¿¡@")
_INNER = frozenset("-‑–—/_")
# After these an apostrophe joins two words, as in o'clock, d'accord and l'avenir.
_ELIDED_WORDS = frozenset(("o", "d", "l"))
# A colon is a closing mark, with a space after it, except in times and scores such as 10:30.
_TIME_GAP = re.compile(r"(?<=\d): (?=\d\d\b)")
_APOSTROPHES = frozenset("'’")
_QUOTES = _APOSTROPHES | {'"'}
_SENTENCE_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:^|[\s(\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|Lt|Sr|Jr|vs|etc|No|Fig)\.\Z")


def find_word_spans(text: str, rule: str) -> list[Span]:
    """Return the span of each word of a text.

    Args:
        rule: A key of ``SPLIT_RULES``.

    >>> text = "She doesn't pay $1,000."
    >>> [text[start:end] for start, end in find_word_spans(text, "split")]
    ['She', 'does', "n't", 'pay', '$', '1,000', '.']
    """
    return [match.span() for match in re.finditer(SPLIT_RULES[rule], text)]


def normalize_word(word: str, *, lower: bool) -> str:
    """Return a word as a vocabulary spells it: with straight apostrophes, and in lower case with ``lower``.

    >>> normalize_word("Isn’t", lower=True)
    "isn't"
    """
    # Corpora have both apostrophes, often in one text: "isn’t" must not be unknown to a model trained on "isn't".
    word = word.replace("’", "'")
    return word.lower() if lower else word


def join_words(words: Sequence[str], rule: str = "split") -> str:
    """Return the text of words that a rule has split, or might have split.

    >>> join_words(["She", "does", "n't", "pay", "$", "1,000", "(", "\\"", "a", "lot", "\\"", ")", "."])
    'She doesn\\'t pay $1,000 ("a lot").'
    >>> join_words(["a", "well", "-", "known", "word"])
    'a well-known word'
    """
    if rule in ("spaces", "words"):
        return " ".join(words)
    parts: list[str] = []
    open_quotes: set[str] = set()
    is_glued = True
    for word in words:
        previous = parts[-1] if parts else ""
        is_inner = word in _INNER or (word in _APOSTROPHES and previous.lower() in _ELIDED_WORDS)
        closes = not is_inner and (
            _is_closing_quote(word, previous, open_quotes) if word in _QUOTES else _is_closing_mark(word, previous)
        )
        parts += [word] if is_glued or is_inner or closes else [" ", word]
        is_glued = is_inner or word in _OPENING or (word in _QUOTES and not closes)
        if word in _QUOTES and not is_inner and closes == (word in open_quotes):
            open_quotes ^= {word}
    return _TIME_GAP.sub(":", "".join(parts))


def _is_closing_quote(mark: str, previous: str, open_quotes: set[str]) -> bool:
    """Return whether a quotation mark belongs to the word before it."""
    return mark in open_quotes or (mark in _APOSTROPHES and previous.lower().endswith("s"))


def _is_closing_mark(word: str, previous: str) -> bool:
    """Return whether a mark belongs to the word before it."""
    # Points after points would be split as one word with them.
    return bool(_CLOSING.fullmatch(word)) and not (word.startswith(".") and previous.strip(".") == "")


def extract_first_sentence(text: str) -> tuple[str, bool]:
    """Return the first sentence of a text, and whether anything follows it.

    >>> extract_first_sentence(" Mr. Fox left. He was ill.")
    ('Mr. Fox left.', True)
    >>> extract_first_sentence("Who left?")
    ('Who left?', False)
    """
    # A model that was trained on documents does not stop after a sentence: the first line ends where another begins.
    line, newline, _ = text.strip().partition("\n")
    for boundary in _SENTENCE_BOUNDARY.finditer(line):
        if not _ABBREVIATION.search(line[: boundary.start()]):
            return line[: boundary.end()], True
    return line.rstrip(), bool(newline)


@dataclass(frozen=True)
class Vocabulary:
    """The words of a model in the order of their ids; the first three are ``<unk>``, ``<s>`` and ``</s>``.

    Args:
        rule: The rule that splits text into words, a key of ``SPLIT_RULES``.
        lower: Whether words are lower-cased.

    >>> vocabulary = Vocabulary((*SPECIAL_WORDS, "cats", "."), "split", lower=True)
    >>> vocabulary.tokenize("Cats purr.")
    (['cats', 'purr', '.'], [(0, 4), (5, 9), (9, 10)])
    >>> vocabulary.to_ids(["cats", "purr", "."])
    [3, 0, 4]
    """

    words: tuple[str, ...]
    rule: str
    lower: bool

    def __post_init__(self) -> None:
        if self.words[:3] != SPECIAL_WORDS:
            raise ModelError(f"a vocabulary begins with {', '.join(SPECIAL_WORDS)}, not {', '.join(self.words[:3])}")
        if self.rule not in SPLIT_RULES:
            raise ModelError(f"no rule {self.rule!r} for splitting words; the rules are {', '.join(SPLIT_RULES)}")
        if len(self.index) < len(self.words):
            raise ModelError("the vocabulary has a word twice")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The id of each word."""
        return {word: word_id for word_id, word in enumerate(self.words)}

    def tokenize(self, text: str) -> tuple[list[str], list[Span]]:
        """Return the words of a text as the vocabulary spells them, and their spans in the text."""
        word_spans = find_word_spans(text, self.rule)
        return [normalize_word(text[start:end], lower=self.lower) for start, end in word_spans], word_spans

    def to_ids(self, words: Sequence[str]) -> list[int]:
        """Return the id of each word; unknown words get that of ``<unk>``."""
        return [self.index.get(word, UNKNOWN) for word in words]

    def to_json(self) -> bytes:
        """Return the content of the vocabulary file, which stands beside the weights."""
        content = {"words_by": self.rule, "lower": self.lower, "words": self.words}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the vocabulary in a model's folder."""
    path = folder / VOCABULARY_FILE
    try:
        content = json.loads(path.read_bytes())
        return Vocabulary(tuple(map(str, content["words"])), str(content["words_by"]), bool(content["lower"]))
    except OSError as error:
        raise ModelError(f"cannot read the vocabulary {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is no vocabulary file of a model trained by acceptability: {error}") from error


@dataclass(frozen=True, slots=True)
class ScoredWord:
    """A word, its span in the text, and its log-probability (nats); None where no token of it was scored."""

    text: str
    span: Span
    logprob: float | None


def compute_word_logprobs(token_scores: TokenScores) -> list[ScoredWord]:
    """Return the words of a sentence, separated by spaces, with their log-probabilities, summed over tokens.

    With a model's ``spaces='trailing'``, a word includes the space after it and not the one before. A token without a
    span of its own, such as an end token, belongs to no word.

    >>> import numpy as np
    >>> token_scores = TokenScores("Cats sleep.", ("C", "ats", " sleep", "."), ((0, 1), (1, 4), (4, 10), (10, 11)),
    ...                            np.array([-1.0, -2.0, -3.0, -4.0], np.float32))
    >>> [(word.text, word.logprob) for word in compute_word_logprobs(token_scores)]
    [('Cats', -3.0), ('sleep.', -7.0)]
    """
    spans = [match.span() for match in re.finditer(r"\S+", token_scores.text)]
    logprobs = token_scores.logprobs.tolist()
    return [
        ScoredWord(token_scores.text[start:end], (start, end), sum(map(logprobs.__getitem__, own)) if own else None)
        for (start, end), own in zip(spans, assign_tokens(token_scores, spans), strict=True)
    ]


def assign_tokens(token_scores: TokenScores, spans: Sequence[Span]) -> list[list[int]]:
    """Return the positions of the scored tokens of each word; none for a word of which no token was scored.

    A token without characters of its own, such as an end token, belongs to no word.

    Args:
        token_scores: The token scores of a text.
        spans: Where the words are, in the order of the text.

    >>> import numpy as np
    >>> token_scores = TokenScores("Cats sleep.", ("C", "ats", " sleep", "."), ((0, 1), (1, 4), (4, 10), (10, 11)),
    ...                            np.zeros(4, np.float32))
    >>> assign_tokens(token_scores, [(0, 4), (5, 11)])
    [[0, 1], [2, 3]]
    """
    positions: list[list[int]] = [[] for _ in spans]
    ends = [end for _, end in spans]
    for position, (start, end) in enumerate(token_scores.offsets):
        # A token may begin with the space before its word, so the word that holds its end is the one it belongs to.
        number = bisect_left(ends, end)
        if start < end and number < len(spans) and spans[number][0] < end:
            positions[number].append(position)
    return positions
