"""Log-probabilities of tokens that somebody published, joined to the words of a table.

A published file has a row for each token, with the token as it stands in the text, its log-probability, and perhaps a
column that says which text it belongs to. Its texts are found by their words and not by their numbers, which may begin
at 0 in one file and at 1 in the other. They have to have the same number of words; a word that is spelled otherwise is
said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acceptability.api.psycholinguistics.word_tables import TableWord, WordTable, read_any_rows
from acceptability.errors import ScoreError, shorten, suggest_name
from acceptability.models.files import hash_file
from acceptability.specs import format_spec
from acceptability.text.io import parse_number
from acceptability.text.words import assign_tokens
from acceptability.types import TokenScores

_MEANINGS = {
    "token": ("token",),
    "logprob": ("logprob", "log_prob", "logprobs", "lp"),
    "surprisal": ("surprisal", "surprisal_bits"),
    "item": ("item", "story", "text_id", "textid", "docid", "document", "passage", "sentence_id"),
}
# A text of the file is that of an item if so many of its words are the same. Different texts share far fewer.
_SAME_WORDS = 0.95


@dataclass(frozen=True, eq=False)
class PublishedTokens:
    """The tokens of some texts, with the log-probabilities that were published.

    Args:
        name: The name of the file.
        signature: The name with a hash of the content.
        texts: For each text, its tokens and their log-probabilities in nats; None for those without one.
    """

    name: str
    signature: str
    texts: Sequence[Sequence[tuple[str, float | None]]]

    def align(self, table: WordTable) -> tuple[dict[str, TokenScores], list[str]]:
        """Return the token scores of each item of a table, and remarks about words that differ or have no value.

        Each token has the place of its word.
        """
        scores: dict[str, TokenScores] = {}
        different: list[str] = []
        incomplete = 0
        for item, words in table.words.items():
            tokens, own_words = self._find_text(item, words, table.name)
            different += [
                f"item {item}, {ours.text!r} is {theirs!r}"
                for ours, theirs in zip(words, own_words, strict=True)
                if ours.text != theirs
            ]
            try:
                scores[item], unscored = _make_scores(tokens, words, table.suite[item].text)
            except ScoreError as error:
                raise ScoreError(f"{self.name}, item {item!r} of {table.name}: {error}") from error
            incomplete += unscored
        remarks = []
        if different:
            shown = "; ".join(different[:5]) + ("; …" if len(different) > 5 else "")
            remarks.append(f"words that are spelled otherwise in {self.name}: {len(different)} ({shown})")
        if incomplete:
            remarks.append(
                f"words without a value: {incomplete}, since {self.name} has none for a token of theirs (the first "
                "token of a text follows nothing)"
            )
        return scores, remarks

    def _find_text(
        self, item: str, words: Sequence[TableWord], table: str
    ) -> tuple[Sequence[tuple[str, float | None]], list[str]]:
        """Return the tokens of the text that has the words of an item, and its words."""
        wanted = [word.text for word in words]
        near, near_count = 0.0, 0
        for tokens in self.texts:
            own = "".join(token for token, _ in tokens).split()
            same = sum(ours == theirs for ours, theirs in zip(wanted, own, strict=False)) / len(wanted)
            if len(own) == len(wanted) and same >= _SAME_WORDS:
                return tokens, own
            near, near_count = max((near, near_count), (same, len(own)))
        raise ScoreError(
            f"{self.name} has no text with the {len(wanted)} words of item {item!r} of {table}: the nearest has "
            f"{near_count} words, and {near:.0%} of them in their places. Both files need all words, in one order"
        )


def _make_scores(
    tokens: Sequence[tuple[str, float | None]], words: Sequence[TableWord], text: str
) -> tuple[TokenScores, int]:
    """Return the scores of the tokens of a text, and how many words lack one; those words have no scores at all."""
    joined = "".join(token for token, _ in tokens)
    spans = [match.span() for match in re.finditer(r"\S+", joined)]
    ends = np.cumsum([len(token) for token, _ in tokens]).tolist()
    places = tuple((end - len(token), end) for end, (token, _) in zip(ends, tokens, strict=True))
    # The place of a token in the published text gives its word, whose place in the table's text may be another.
    whole = TokenScores(joined, tuple(token for token, _ in tokens), places, np.zeros(len(tokens), np.float32))
    kept: list[tuple[str, tuple[int, int], float]] = []
    unscored = 0
    for word, own in zip(words, assign_tokens(whole, spans), strict=True):
        logprobs = [tokens[position][1] for position in own]
        if not own or any(logprob is None for logprob in logprobs):
            unscored += 1
            continue
        kept += [(tokens[at][0], word.span, float(tokens[at][1] or 0.0)) for at in own]
    if not kept:
        raise ScoreError(f"no token of {shorten(text)!r} has a value: leave this text out of the table of words")
    names, offsets, values = zip(*kept, strict=True)
    return TokenScores(text, names, offsets, np.array(values, np.float32)), unscored


def read_published_tokens(path: Path, columns: Mapping[str, str] | None = None) -> PublishedTokens:
    """Return the tokens of a file with a row for each token.

    Args:
        path: A delimited file, perhaps compressed by gzip.
        columns: The names of its columns by their meaning: ``token``, ``logprob`` (nats) or ``surprisal`` (bits), and
            ``item``.
    """
    header, rows = read_any_rows(path)
    found = _match_columns(path.name, header, columns or {})
    value, sign = (found["logprob"], 1.0) if "logprob" in found else (found["surprisal"], -math.log(2))
    texts: dict[str, list[tuple[str, float | None]]] = {}
    for line, row in rows:
        cell = row[value]
        number = None if cell in ("", None) else parse_number(cell)
        if cell not in ("", None) and (number is None or not math.isfinite(number) or number * sign > 0):
            raise ScoreError(
                f"{path.name}, line {line}: {value} is {cell!r}; expected a log-probability in nats, at most 0, or a "
                "surprisal in bits, at least 0"
            )
        item = str(row[found["item"]]) if "item" in found else "1"
        texts.setdefault(item, []).append((str(row[found["token"]]), None if number is None else number * sign))
    return PublishedTokens(path.name, f"{path.name}@{hash_file(path)}", list(texts.values()))


def _match_columns(name: str, header: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    if unknown := named.keys() - _MEANINGS.keys():
        raise ScoreError(f"published tokens have no {sorted(unknown)[0]!r}; name {', '.join(_MEANINGS)}")
    found = {}
    for meaning, synonyms in _MEANINGS.items():
        if meaning in named and named[meaning] not in header:
            raise ScoreError(f"{name} has no column {named[meaning]!r}.{suggest_name(named[meaning], header)}")
        own = named.get(meaning) or next((column for column in header if column.strip().lower() in synonyms), None)
        if own:
            found[meaning] = own
    if "token" not in found or not {"logprob", "surprisal"} & found.keys():
        raise ScoreError(
            f"{name} has the columns {', '.join(header)}; expected a token, and its logprob (nats) or surprisal "
            "(bits). Name them: --score-columns token=COLUMN,logprob=COLUMN"
        )
    return found


def sign_published(tokens: PublishedTokens) -> str:
    """Return the signature of published token scores, in the place of a model's."""
    return format_spec(f"published:{tokens.signature}", {})
