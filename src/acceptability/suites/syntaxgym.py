"""SyntaxGym (Hu, Gauthier, Qian, Wilcox and Levy 2020): items in conditions, cut into regions.

One suite a file. A sentence's regions bear their published numbers; the tags are the item
(also as ``set``), the condition, and ``prediction`` (``prediction_2``, ...), the formulas over
regions and conditions that the item must meet.

Traps: regions come with and without a space at their edges; they are joined by one space, and
by none before a comma or other mark. A region without text has no place in a sentence: its
surprisal is that of nothing. Published outcomes count items from 0, the files from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from acceptability.suites.catalog import Entry
from acceptability.types import Sentence, Span, Suite

_MARKS = ",.;:?!'’"


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the sentences of all items in all conditions."""
    (content,) = files.values()
    return Suite(entry.id, tuple(_sentences(json.loads(content))))


def _sentences(suite: Mapping[str, Any]) -> Iterator[Sentence]:
    formulas = [each["formula"] for each in suite["predictions"]]
    predictions = {
        "prediction" if not place else f"prediction_{place + 1}": each for place, each in enumerate(formulas)
    }
    for item in suite["items"]:
        number = str(item["item_number"])
        for condition in item["conditions"]:
            text, regions = _joined(condition["regions"])
            name = condition["condition_name"]
            tags = {"item": number, "set": f"{suite['meta']['name']}/{number}", "condition": name, **predictions}
            yield Sentence(f"{suite['meta']['name']}/{number}/{name}", text, regions=regions, tags=tags)


def _joined(regions: list[Mapping[str, Any]]) -> tuple[str, dict[str, Span]]:
    """Return the text of all regions, and where each stands in it."""
    text = ""
    places: dict[str, Span] = {}
    for region in regions:
        content = region["content"].strip()
        if not content:
            continue
        if text and content[0] not in _MARKS:
            text += " "
        places[str(region["region_number"])] = len(text), len(text) + len(content)
        text += content
    return text, places
