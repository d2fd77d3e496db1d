"""The sentences that are scored: random minimal pairs of BLiMP, the two sentences of a pair next to each other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from acceptability import load_suite
from acceptability.paths import local_data_folder
from acceptability.types import Suite
from bench.contenders import BenchError

_FRAMES = (
    "",
    "We heard that ",
    "Everyone knows that ",
    "Some people doubt that ",
    "Nobody told us that ",
    "It seems that ",
    "A friend wrote that ",
    "They will explain why ",
    "You may think that ",
    "Last year it was reported that ",
)


def suite() -> Suite:
    """Return BLiMP if its data are on this machine, else the starter suite; the results name it."""
    folder = local_data_folder()
    return load_suite("blimp" if folder is not None and (folder / "blimp").is_dir() else "starter")


def pairs(source: Suite, count: int, seed: int) -> list[str]:
    """Return a number of sentences, or all if there are fewer, as pairs in random order."""
    texts = {sentence.id: sentence.text for sentence in source.sentences}
    drawn = random.Random(seed).sample(source.contrasts, min(count // 2, len(source.contrasts)))
    return [texts[sentence_id] for contrast in drawn for sentence_id in (contrast.better, contrast.worse)]


def many(source: Suite, count: int, seed: int) -> list[str]:
    """Return distinct sentences: those of the suite, and then the same in each of the frames."""
    sentences = list(islice(_framed(pairs(source, 2 * len(source.contrasts), seed)), count))
    if len(sentences) < count:
        raise BenchError(
            f"{source.name} gives {len(sentences)} distinct sentences, fewer than the {count} that are needed. "
            "Use fewer, or set ACCEPTABILITY_DATA to a folder that has BLiMP."
        )
    return sentences


def _framed(texts: list[str]) -> Iterator[str]:
    distinct = list(dict.fromkeys(texts))
    for frame in _FRAMES:
        for text in distinct:
            yield frame + text if not frame else frame + text[0].lower() + text[1:]
