"""The sentences that are scored: whole minimal pairs of BLiMP, drawn with a seed, partners side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from acceptability import load_suite
from acceptability.home import local_data
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
    """Return BLiMP where its data are, else the starter suite; its name goes into the report."""
    folder = local_data()
    return load_suite("blimp" if folder is not None and (folder / "blimp").is_dir() else "starter")


def pairs(source: Suite, count: int, seed: int) -> list[str]:
    """Return so many sentences, or all there are if they are fewer, as pairs in an order drawn with the seed."""
    texts = {sentence.id: sentence.text for sentence in source.sentences}
    drawn = random.Random(seed).sample(source.contrasts, min(count // 2, len(source.contrasts)))
    return [texts[each] for contrast in drawn for each in (contrast.better, contrast.worse)]


def many(source: Suite, count: int, seed: int) -> list[str]:
    """Return any number of different sentences: those of the suite, then each again in one frame after another."""
    found = list(islice(_framed(pairs(source, 2 * len(source.contrasts), seed)), count))
    if len(found) < count:
        raise BenchError(
            f"{source.name} gives {len(found)} different sentences; {count} were asked for. "
            "Ask for fewer, or let ACCEPTABILITY_DATA name a folder that has BLiMP."
        )
    return found


def _framed(texts: list[str]) -> Iterator[str]:
    distinct = list(dict.fromkeys(texts))
    for frame in _FRAMES:
        for text in distinct:
            yield frame + text if not frame else frame + text[0].lower() + text[1:]
