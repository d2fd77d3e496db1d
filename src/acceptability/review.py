"""What a careful reviewer would say of a suite, before any model sees it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from acceptability.errors import reason
from acceptability.stats.power import critical, power
from acceptability.types import Floats, Sentence, Suite

_DAMAGE = re.compile(
    "\ufffd"  # what decoders put for bytes they cannot read
    "|Ã[\x80-\xbf]|â€.|Â[\xa0-\xbf]"  # UTF-8 read as Latin-1 or Windows-1252
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
    r"|&(?:amp|quot|lt|gt|#\d+);"
)
_NOTABLE_SHARE = 0.6
_SIZES = (*range(5, 200, 5), *range(200, 2000, 20), *range(2000, 20_000, 500), *range(20_000, 200_001, 10_000))


@dataclass(frozen=True)
class Finding:
    """One thing that a reviewer would remark on.

    Args:
        kind: What it is, in a word or two.
        message: What it means, with numbers.
        ids: The sentences or contrasts that it concerns, if it concerns single ones.
    """

    kind: str
    message: str
    ids: tuple[str, ...] = ()


def review(suite: Suite, *, effect: float = 0.6, language: str = "en", seed: int = 0) -> list[Finding]:
    """Return what there is to remark on in a suite.

    Args:
        effect: The pair accuracy that the suite should be able to tell from chance.
        language: Whose word frequencies good and bad members are compared by.
    """
    return [
        *_identical(suite),
        *_contradicting(suite),
        *_duplicates(suite),
        *_incomplete(suite),
        *_damaged(suite),
        *_length(suite),
        *_frequency(suite, language),
        *_power(suite, effect, seed),
    ]


def _identical(suite: Suite) -> Iterator[Finding]:
    texts = suite.by_id
    same = [each.id for each in suite.contrasts if texts[each.better].text == texts[each.worse].text]
    if same:
        yield Finding("identical pair", f"{len(same)} contrasts have the same text on both sides", tuple(same))


def _contradicting(suite: Suite) -> Iterator[Finding]:
    texts = suite.by_id
    against = [each.id for each in suite.contrasts if texts[each.better].label == 0 or texts[each.worse].label == 1]
    if against:
        message = f"{len(against)} contrasts prefer a sentence labelled 0, or spurn one labelled 1"
        yield Finding("label against contrast", message, tuple(against))
    labels: dict[str, set[int]] = {}
    for sentence in suite.sentences:
        if sentence.label is not None:
            labels.setdefault(sentence.text, set()).add(sentence.label)
    torn = {text for text, found in labels.items() if len(found) > 1}
    if torn:
        ids = tuple(sentence.id for sentence in suite.sentences if sentence.text in torn)
        yield Finding("labels contradict", f"{len(torn)} texts have both labels", ids)


def _duplicates(suite: Suite) -> Iterator[Finding]:
    counts = Counter(sentence.text for sentence in suite.sentences)
    often = {text for text, count in counts.items() if count > 1}
    if often:
        ids = tuple(sentence.id for sentence in suite.sentences if sentence.text in often)
        yield Finding("duplicate sentence", f"{len(often)} texts come more than once, in {len(ids)} sentences", ids)


def _incomplete(suite: Suite) -> Iterator[Finding]:
    for name, values in (
        ("rating", [sentence.rating for sentence in suite.sentences]),
        ("label", [sentence.label for sentence in suite.sentences]),
    ):
        lacking = [sentence.id for sentence, value in zip(suite.sentences, values, strict=True) if value is None]
        if 0 < len(lacking) < len(values):
            kind = "unrated sentence" if name == "rating" else "unlabelled sentence"
            yield Finding(kind, f"{len(lacking)} of {len(values)} sentences have no {name}", tuple(lacking))


def _damaged(suite: Suite) -> Iterator[Finding]:
    found = [sentence.id for sentence in suite.sentences if _DAMAGE.search(sentence.text)]
    if found:
        message = f"{len(found)} sentences look damaged: wrongly decoded letters, control characters or HTML entities"
        yield Finding("encoding damage", message, tuple(found))


def _length(suite: Suite) -> Iterator[Finding]:
    """Compare lengths in words, or in characters where sentences are written without spaces."""
    if sum(" " in sentence.text for sentence in suite.sentences) * 2 > len(suite.sentences):
        return _unbalanced(suite, "length", "words", lambda sentence: float(len(sentence.text.split())))
    return _unbalanced(suite, "length", "characters", lambda sentence: float(len(sentence.text)))


def _frequency(suite: Suite, language: str) -> Iterator[Finding]:
    if not suite.contrasts and len({sentence.label for sentence in suite.sentences} - {None}) < 2:
        return
    if find_spec("wordfreq") is None:
        yield Finding("not checked", "word frequencies were not compared: pip install wordfreq")
        return
    from wordfreq import zipf_frequency

    try:
        zipf_frequency("a", language)
    except (LookupError, ImportError) as error:
        yield Finding("not checked", f"word frequencies were not compared for language {language!r}: {reason(error)}")
        return

    def frequency(sentence: Sentence) -> float:
        words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", sentence.text.lower())
        return math.fsum(zipf_frequency(word, language) for word in words) / len(words) if words else 0.0

    yield from _unbalanced(suite, "frequency", "on the Zipf scale, per word", frequency)


def _unbalanced(suite: Suite, what: str, unit: str, of: Callable[[Sentence], float]) -> Iterator[Finding]:
    """Say where good and bad members differ in something that a model could go by."""
    if suite.contrasts:
        pairs = [(of(suite.by_id[each.better]), of(suite.by_id[each.worse])) for each in suite.contrasts]
        gaps = np.array([good - bad for good, bad in pairs])
        more, fewer = int((gaps > 1e-9).sum()), int((gaps < -1e-9).sum())
        share = max(more, fewer) / max(1, more + fewer)
        if share > _NOTABLE_SHARE and max(more, fewer) >= critical(more + fewer):
            side = "higher" if more > fewer else "lower"
            yield Finding(
                f"{what} imbalance",
                f"the better sentence has the {side} {what} in {max(more, fewer)} of {more + fewer} contrasts that "
                f"differ in it (mean gap {gaps.mean():+.2f} {unit}): {what} alone would score {share:.0%} of these",
            )
        return
    good, bad = (np.array([of(each) for each in suite.sentences if each.label == label]) for label in (1, 0))
    if len(good) > 1 and len(bad) > 1 and abs(d := _effect_size(good, bad)) > 0.2:
        yield Finding(
            f"{what} imbalance",
            f"acceptable and unacceptable sentences differ in {what}: {good.mean():.2f} against {bad.mean():.2f} "
            f"{unit} (Cohen's d {d:+.2f})",
        )


def _effect_size(first: Floats, second: Floats) -> float:
    pooled = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    gap = float(first.mean() - second.mean())
    if abs(gap) < 1e-9:
        return 0.0
    return gap / pooled if pooled else math.copysign(math.inf, gap) if gap else 0.0


def _power(suite: Suite, effect: float, seed: int) -> Iterator[Finding]:
    n = len(suite.contrasts)
    if not n:
        return
    found = power(n, effect, seed=seed)
    if found < 0.8:
        enough = (size for size in _SIZES if size > n and power(size, effect, seed=seed) >= 0.8)
        needed = next((f"about {size:,}" for size in enough), f"more than {_SIZES[-1]:,}")
        yield Finding(
            "too few items",
            f"{n} contrasts tell a pair accuracy of {effect:.1%} from chance in {found:.0%} of experiments "
            f"(simulated); {needed} are needed for 80 %",
        )
