"""Quality checks of a suite before any model scores it: duplicates, contradictions, imbalances, statistical power."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from acceptability.errors import first_error_line
from acceptability.stats.proportions import critical_count, simulate_power
from acceptability.suites.catalog import find_entries, load_catalog
from acceptability.types import Floats, Sentence, Suite

_DAMAGE = re.compile(
    "\ufffd"  # the replacement character, which decoders put for bytes that they cannot read
    "|Ã[\x80-\xbf]|â€.|Â[\xa0-\xbf]"  # UTF-8 read as Latin-1 or Windows-1252
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
    r"|&(?:amp|quot|lt|gt|#\d+);"
)
# An imbalance also has to be significant; this keeps tiny but significant ones in large suites from being reported.
_NOTABLE_SHARE = 0.6
# Sample sizes to try for the advice "about N are needed". The steps grow, because each size costs a simulation and N is
# approximate anyway.
_CANDIDATE_SIZES = (
    *range(5, 200, 5),
    *range(200, 2000, 20),
    *range(2000, 20_000, 500),
    *range(20_000, 200_001, 10_000),
)


@dataclass(frozen=True)
class Finding:
    """A problem of a suite.

    Args:
        kind: The kind of problem, such as "duplicate sentence".
        message: The problem in a sentence, with numbers.
        ids: The sentences or contrasts concerned; empty if it concerns the suite as a whole.
    """

    kind: str
    message: str
    ids: tuple[str, ...] = ()


def review(suite: Suite, *, effect: float = 0.6, language: str = "en", seed: int = 0) -> list[Finding]:
    """Return the problems of a suite.

    Args:
        effect: The pair accuracy that the suite should be able to distinguish from chance.
        language: The language whose word frequencies are compared between better and worse sentences.
        seed: The seed of the simulated power analysis.
    """
    return [
        *_find_identical_pairs(suite),
        *_find_contradictions(suite),
        *_find_duplicates(suite),
        *_find_incomplete(suite),
        *_find_context_faults(suite),
        *_find_encoding_damage(suite),
        *_check_length_balance(suite),
        *_check_context_balance(suite),
        *_check_frequency_balance(suite, language),
        *_check_power(suite, effect, seed),
    ]


def detect_language(suite: Suite, name: str) -> str:
    """Return the language of a suite: from the tags of its sentences, or else from the catalog, or else English.

    Args:
        name: The name that the suite was loaded by.

    >>> detect_language(Suite("mine", (Sentence("a", "Katzen schlafen.", tags={"language": "de"}),)), "mine.csv")
    'de'
    """
    tagged = {sentence.tags.get("language") for sentence in suite.sentences}
    if len(tagged) == 1 and (only := tagged.pop()):
        return only
    # A part of a suite, such as blimp/anaphor, is no entry of its own but has the language of the suite above it.
    above = [entry for entry in load_catalog() if f"{name}/".startswith(f"{entry.id}/")]
    return next((entry.language for entry in [*find_entries(name), *above]), "en")


def _find_identical_pairs(suite: Suite) -> Iterator[Finding]:
    # No model can get such a pair right, so it only adds noise or, by the tie rule, a constant.
    texts = suite.by_id
    same = [one.id for one in suite.contrasts if _find_query(texts[one.better]) == _find_query(texts[one.worse])]
    if same:
        yield Finding("identical pair", f"{len(same)} contrasts have the same text on both sides", tuple(same))


def _find_query(sentence: Sentence) -> tuple[str, str]:
    """Return what a model reads: the context and the sentence. The same words after another text are another query."""
    return sentence.tags.get("context", ""), sentence.text


def _find_context_faults(suite: Suite) -> Iterator[Finding]:
    has_context = {sentence.id: bool(sentence.tags.get("context", "").strip()) for sentence in suite.sentences}
    one_sided = [one.id for one in suite.contrasts if has_context[one.better] != has_context[one.worse]]
    if one_sided:
        message = f"{len(one_sided)} contrasts have a context before one of their sentences only"
        yield Finding("context on one side", message, tuple(one_sided))
    without = [name for name, has in has_context.items() if not has]
    if 0 < len(without) < len(has_context) and not one_sided:
        message = f"{len(without)} of {len(has_context)} sentences have no context"
        yield Finding("sentence without context", message, tuple(without))


def _find_contradictions(suite: Suite) -> Iterator[Finding]:
    texts = suite.by_id
    contradicting = [
        contrast.id
        for contrast in suite.contrasts
        if texts[contrast.better].label == 0 or texts[contrast.worse].label == 1
    ]
    if contradicting:
        message = f"{len(contradicting)} contrasts prefer a sentence labelled 0, or disprefer one labelled 1"
        yield Finding("label against contrast", message, tuple(contradicting))
    # Suites collected from several sources may contain a sentence twice, judged differently.
    labels: dict[tuple[str, str], set[int]] = {}
    for sentence in suite.sentences:
        if sentence.label is not None:
            labels.setdefault(_find_query(sentence), set()).add(sentence.label)
    ambiguous_texts = {text for text, text_labels in labels.items() if len(text_labels) > 1}
    if ambiguous_texts:
        ids = tuple(sentence.id for sentence in suite.sentences if _find_query(sentence) in ambiguous_texts)
        yield Finding("labels contradict", f"{len(ambiguous_texts)} texts have both labels", ids)


def _find_duplicates(suite: Suite) -> Iterator[Finding]:
    counts = Counter(map(_find_query, suite.sentences))
    repeated = {text for text, count in counts.items() if count > 1}
    if repeated:
        ids = tuple(sentence.id for sentence in suite.sentences if _find_query(sentence) in repeated)
        yield Finding("duplicate sentence", f"{len(repeated)} texts occur more than once, in {len(ids)} sentences", ids)


def _find_incomplete(suite: Suite) -> Iterator[Finding]:
    for name, values in (
        ("rating", [sentence.rating for sentence in suite.sentences]),
        ("label", [sentence.label for sentence in suite.sentences]),
    ):
        missing = [sentence.id for sentence, value in zip(suite.sentences, values, strict=True) if value is None]
        # A suite without any ratings, or without any labels, simply is of another kind.
        if 0 < len(missing) < len(values):
            kind = "unrated sentence" if name == "rating" else "unlabelled sentence"
            yield Finding(kind, f"{len(missing)} of {len(values)} sentences have no {name}", tuple(missing))


def _find_encoding_damage(suite: Suite) -> Iterator[Finding]:
    damaged_ids = [one.id for one in suite.sentences if any(map(_DAMAGE.search, _find_query(one)))]
    if damaged_ids:
        message = (
            f"{len(damaged_ids)} sentences look damaged: wrongly decoded letters, control characters or HTML entities"
        )
        yield Finding("encoding damage", message, tuple(damaged_ids))


def _check_length_balance(suite: Suite) -> Iterator[Finding]:
    """Compare lengths in words, or in characters if the language is written without spaces."""
    # Chinese and Japanese sentences count as one word, so their lengths in words would all be the same.
    if sum(" " in sentence.text for sentence in suite.sentences) * 2 > len(suite.sentences):
        return _find_imbalance(suite, "length", "words", lambda sentence: float(len(sentence.text.split())))
    return _find_imbalance(suite, "length", "characters", lambda sentence: float(len(sentence.text)))


def _check_context_balance(suite: Suite) -> Iterator[Finding]:
    """Compare the lengths of contexts, if the two members of contrasts have contexts of their own."""
    by_id = suite.by_id
    contexts = [
        (by_id[one.better].tags.get("context"), by_id[one.worse].tags.get("context")) for one in suite.contrasts
    ]
    if any(better != worse for better, worse in contexts):
        yield from _find_imbalance(suite, "context length", "words", _count_context_words)


def _count_context_words(sentence: Sentence) -> float:
    return float(len(sentence.tags.get("context", "").split()))


def _check_frequency_balance(suite: Suite, language: str) -> Iterator[Finding]:
    if not suite.contrasts and len({sentence.label for sentence in suite.sentences} - {None}) < 2:
        return
    # wordfreq is optional, and the other checks are worth having without it.
    if find_spec("wordfreq") is None:
        yield Finding("not checked", "word frequencies were not compared: pip install wordfreq")
        return
    from wordfreq import zipf_frequency

    # wordfreq needs extra packages for Chinese, Japanese and Korean, and only complains when it is called.
    try:
        zipf_frequency("a", language)
    except (LookupError, ImportError) as error:
        yield Finding(
            "not checked", f"word frequencies were not compared for language {language!r}: {first_error_line(error)}"
        )
        return

    def mean_zipf(sentence: Sentence) -> float:
        # Apostrophes belong to words: wordfreq lists "don't", and "don" and "t" separately would count as rare.
        words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", sentence.text.lower())
        # fsum is exact and therefore independent of the word order, in which some pairs differ and nothing else.
        return math.fsum(zipf_frequency(word, language) for word in words) / len(words) if words else 0.0

    yield from _find_imbalance(suite, "frequency", "on the Zipf scale, per word", mean_zipf)


def _find_imbalance(
    suite: Suite, property_name: str, unit: str, measure: Callable[[Sentence], float]
) -> Iterator[Finding]:
    """Find a property in which acceptable and unacceptable sentences differ, and which a model could exploit.

    Args:
        property_name: The property in messages, such as "length".
        unit: The unit of its values in messages.
        measure: The function that returns a sentence's value.
    """
    if suite.contrasts:
        pairs = [
            (measure(suite.by_id[contrast.better]), measure(suite.by_id[contrast.worse]))
            for contrast in suite.contrasts
        ]
        gaps = np.array([good - bad for good, bad in pairs])
        # Means of floats differ in the last bits even if the words are the same, hence the tolerance.
        more, fewer = int((gaps > 1e-9).sum()), int((gaps < -1e-9).sum())
        share = max(more, fewer) / max(1, more + fewer)
        if share > _NOTABLE_SHARE and max(more, fewer) >= critical_count(more + fewer):
            side = "higher" if more > fewer else "lower"
            yield Finding(
                f"{property_name} imbalance",
                f"the better sentence has the {side} {property_name} in {max(more, fewer)} of {more + fewer} "
                f"contrasts that differ in it (mean gap {gaps.mean():+.2f} {unit}): {property_name} alone would get "
                f"{share:.0%} of these right",
            )
        return
    good, bad = (
        np.array([measure(sentence) for sentence in suite.sentences if sentence.label == label]) for label in (1, 0)
    )
    # Cohen's d of 0.2 is conventionally the smallest effect worth mentioning.
    if len(good) > 1 and len(bad) > 1 and abs(d := _cohens_d(good, bad)) > 0.2:
        yield Finding(
            f"{property_name} imbalance",
            f"acceptable and unacceptable sentences differ in {property_name}: {good.mean():.2f} against "
            f"{bad.mean():.2f} {unit} (Cohen's d {d:+.2f})",
        )


def _cohens_d(first: Floats, second: Floats) -> float:
    pooled = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    gap = float(first.mean() - second.mean())
    # Two constant groups have no spread: they are the same up to rounding, or infinitely far apart.
    if abs(gap) < 1e-9:
        return 0.0
    return gap / pooled if pooled else math.copysign(math.inf, gap) if gap else 0.0


def _check_power(suite: Suite, effect: float, seed: int) -> Iterator[Finding]:
    n = len(suite.contrasts)
    if not n:
        return
    # 80 % is the conventional power to plan for.
    achieved_power = simulate_power(n, effect, seed=seed)
    if achieved_power < 0.8:
        enough = (size for size in _CANDIDATE_SIZES if size > n and simulate_power(size, effect, seed=seed) >= 0.8)
        needed = next((f"about {size:,}" for size in enough), f"more than {_CANDIDATE_SIZES[-1]:,}")
        yield Finding(
            "too few items",
            f"{n} contrasts distinguish a pair accuracy of {effect:.1%} from chance in {achieved_power:.0%} of "
            f"simulated experiments; {needed} are needed for 80 %",
        )
