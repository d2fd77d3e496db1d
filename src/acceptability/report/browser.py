"""The item browser's data: pairs of sentences, what each model made of them, and how surprising each token is.

A page that opens from disk holds some pairs only: first those that models differ in, then a seeded sample.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acceptability.report.again import Token, stored_tokens
from acceptability.report.gather import Material, Row, model_name
from acceptability.signature import parse
from acceptability.types import Suite

MOST = 2000
"""How many pairs a page holds."""


@dataclass(frozen=True)
class Judged:
    """What a model made of a pair: better minus worse in its own units, and what the pair earns from 0 to 1."""

    gap: float
    correct: float


@dataclass(frozen=True)
class Pair:
    """A pair of sentences, as the browser shows it."""

    suite: str
    ids: tuple[str, str]
    texts: tuple[str, str]
    tags: Mapping[str, str]
    judged: Mapping[str, Judged]

    @property
    def id(self) -> str:
        """The name of the contrast."""
        return " > ".join(self.ids)

    @property
    def differs(self) -> bool:
        """Whether some models get it right and others not."""
        return len({each.correct for each in self.judged.values()}) > 1


@dataclass(frozen=True)
class Browser:
    """The pairs of a page.

    Args:
        total: How many pairs there are in all; a page may hold fewer.
        tokens: Where they are stored, the tokens of each sentence: by model, then by ``suite`` and sentence id.
    """

    models: tuple[str, ...]
    pairs: tuple[Pair, ...]
    total: int
    tokens: Mapping[str, Mapping[tuple[str, str], Sequence[Token]]]

    @property
    def about(self) -> str:
        """How many pairs are here, and which."""
        if self.total <= len(self.pairs):
            return f"All {self.total:,} pairs are here."
        differing = sum(each.differs for each in self.pairs)
        return (
            f"{len(self.pairs):,} of {self.total:,} pairs are here: first those that models differ in "
            f"({differing:,}), then a sample (seed 0). The command acceptability serve shows all."
        )

    @property
    def shading(self) -> str:
        """Which models' surprisals are there."""
        lacking = [name for name in self.models if name not in self.tokens]
        if not lacking:
            return "Shading: the surprisal of each token in bits; the stronger the colour, the more surprising."
        return (
            f"No surprisals of single tokens are stored for {', '.join(lacking)} (a classifier has none; the scores "
            "of a file, of a region, or of another home are not in this store)."
        )


def browser(material: Material, *, most: int = MOST) -> Browser | None:
    """Return the pairs of a report; None where no row is about a pair of a suite that is here."""
    everything = list(_pairs(material))
    if not everything:
        return None
    kept = chosen(everything, most)
    models = tuple(dict.fromkeys(name for each in everything for name in each.judged))
    tokens: dict[str, dict[tuple[str, str], Sequence[Token]]] = {}
    for name, suite in material.suites.items():
        ids = {member for each in kept if each.suite == name for member in each.ids}
        sentences = [each for each in suite.sentences if each.id in ids]
        for model, found in stored_tokens(suite, sentences, _signatures(material, name)).items():
            tokens.setdefault(model, {}).update({(name, key): each for key, each in found.items()})
    return Browser(models, tuple(kept), len(everything), tokens)


def chosen(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Return at most so many pairs: those that models differ in, then a seeded sample, all in their order."""
    if len(pairs) <= most:
        return list(pairs)
    draw = random.Random(0)
    places = range(len(pairs))
    differing = [place for place in places if pairs[place].differs]
    same = [place for place in places if not pairs[place].differs]
    first = sorted(draw.sample(differing, min(most, len(differing))))
    rest = sorted(draw.sample(same, min(most - len(first), len(same))))
    return [pairs[place] for place in (*first, *rest)]


def _pairs(material: Material) -> Iterator[Pair]:
    """Yield every pair, judged by the first measure of pairs that there is for its suite."""
    measure: dict[str, str] = {}
    judged: dict[tuple[str, str], dict[str, Judged]] = defaultdict(dict)
    for row in material.units:
        found = _judged(row)
        suite = row.get("suite", "")
        if found and suite in material.suites and measure.setdefault(suite, row["measure"]) == row["measure"]:
            judged[suite, row["unit"]][model_name(row)] = found
    for name, suite in material.suites.items():
        for each in suite.contrasts:
            if (name, each.id) in judged:
                yield _pair(name, suite, each.better, each.worse, each.tags, judged[name, each.id])


def _pair(
    name: str, suite: Suite, better: str, worse: str, tags: Mapping[str, str], judged: Mapping[str, Judged]
) -> Pair:
    texts = suite.by_id[better].text, suite.by_id[worse].text
    return Pair(name, (better, worse), texts, dict(tags), dict(judged))


def _judged(row: Row) -> Judged | None:
    correct = row.get("correct", row.get("met"))
    if correct is None or "unit" not in row:
        return None
    gap = row["gap"] if "gap" in row else row["worse"] - row["better"] if "worse" in row else None
    return None if gap is None else Judged(gap, correct)


def _signatures(material: Material, suite: str) -> dict[str, str]:
    """Return the signature of each model's scores on a suite."""
    found = {
        model_name(row): parse(row["signature"]).get("model", "")
        for row in material.results
        if row["suite"] == suite and row.get("signature")
    }
    for row in material.comparisons:
        parts = parse(row["signature"]).get("model", "").split(" minus ")
        if row["suite"] == suite and len(parts) == 2:
            for side, signature in zip(("first", "second"), parts, strict=True):
                found.setdefault(model_name({"model": row[side]}), signature)
    return {name: signature for name, signature in found.items() if "#" not in signature.rpartition(".")[2]}


def packed(found: Browser) -> dict[str, Any]:
    """Return the browser's data with short keys: tags and models by number, tokens as flat lists of numbers."""
    return {
        "models": list(found.models),
        "shaded": list(found.tokens),
        "pairs": [
            {
                "id": each.id,
                "suite": each.suite,
                "texts": list(each.texts),
                "tags": dict(each.tags),
                "gaps": [_rounded(each.judged.get(name)) for name in found.models],
                "right": [_earned(each.judged.get(name)) for name in found.models],
                "tokens": [[_flat(found, model, each.suite, member) for model in found.tokens] for member in each.ids],
            }
            for each in found.pairs
        ],
    }


def _rounded(judged: Judged | None) -> float | None:
    return None if judged is None else round(judged.gap, 3)


def _earned(judged: Judged | None) -> float | None:
    return None if judged is None else judged.correct


def _flat(found: Browser, model: str, suite: str, sentence: str) -> list[float]:
    """Return start, end and surprisal in bits of each token, one after another."""
    tokens = found.tokens[model].get((suite, sentence), ())
    return [number for each in tokens for number in (each.start, each.end, round(each.surprisal_bits, 1))]


def json_text(data: object) -> str:
    """Return JSON that may stand inside a ``<script>`` element: nothing in it can end the element.

    >>> json_text("</script>&")
    '"\\\\u003c/script\\\\u003e\\\\u0026"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
