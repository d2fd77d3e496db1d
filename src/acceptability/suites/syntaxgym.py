"""SyntaxGym (Hu, Gauthier, Qian, Wilcox and Levy 2020): items in conditions, cut into regions.

One suite a file, published or a user's own (``mine.json``). A sentence's regions bear their
published numbers; the tags are the item (also as ``set``), the condition, ``prediction``
(``prediction_2``, ...), the formulas over regions and conditions that the item must meet, and
for published suites the paper's circuit.

Traps: regions come with and without a space at their edges; they are joined by one space, and
by none before a comma or other mark. A region without text has no place in a sentence: the tag
``empty_regions`` lists it, and its surprisal is that of nothing, 0. Published outcomes count
items from 0, the files from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acceptability.errors import SpellingError, SuiteError
from acceptability.formulas import Region, parse, regions
from acceptability.suites.catalog import Entry
from acceptability.text import content_of
from acceptability.types import Sentence, Span, Suite

_MARKS = ",.;:?!'’"
_MOST_PREDICTIONS = 100
_CIRCUITS = {
    "number": "agreement",
    "npi": "licensing",
    "reflexive": "licensing",
    "mvrr": "garden-path effects",
    "npz": "garden-path effects",
    "subordination": "gross syntactic state",
    "center": "center embedding",
    "fgd": "long-distance dependencies",
    "cleft": "long-distance dependencies",
}


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the sentences of all items in all conditions."""
    (content,) = files.values()
    name = entry.id.rpartition("/")[2]
    circuit = circuit_of(name)
    return _suite(entry.id, content, entry.id, {"circuit": circuit} if circuit else {})


def read_json(path: Path) -> Suite:
    """Return the suite in a user's own file of SyntaxGym's form."""
    content = content_of(path)
    return _suite(path.stem, content, str(path), {})


def circuit_of(name: str) -> str | None:
    """Return which of the paper's six circuits a published suite is in; ``nn-nv-rpl`` is in none.

    >>> circuit_of("fgd-embed3")
    'long-distance dependencies'
    """
    return _CIRCUITS.get(name.replace("-", "_").partition("_")[0])


def _formula_tags(formulas: list[str]) -> dict[str, str]:
    """Return the tags that hold predictions: ``prediction``, ``prediction_2``, ..."""
    return {"prediction" if place == 1 else f"prediction_{place}": each for place, each in enumerate(formulas, start=1)}


def _suite(name: str, content: bytes, where: str, tags: Mapping[str, str]) -> Suite:
    try:
        told = json.loads(content)
        sentences = tuple(_sentences(told, tags))
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where} is not a file of JSON in UTF-8: {error}") from error
    except KeyError as error:
        raise SuiteError(f"{where}: {error} is missing; expected SyntaxGym's meta, predictions and items") from error
    except (TypeError, AttributeError) as error:
        raise SuiteError(f"{where} is not of SyntaxGym's form (meta, predictions, items): {error}") from error
    except (SpellingError, SuiteError) as error:
        raise SuiteError(f"{where}: {error}") from error
    return Suite(name, sentences)


def _sentences(suite: Mapping[str, Any], more: Mapping[str, str]) -> Iterator[Sentence]:
    title = str(suite["meta"]["name"])
    if (metric := suite["meta"].get("metric", "sum")) != "sum":
        raise SuiteError(f"the metric is {metric!r}; only 'sum' is known: a region's surprisal is that of its tokens")
    formulas = [each["formula"] for each in suite["predictions"]]
    if not formulas:
        raise SuiteError("there are no predictions")
    if len(formulas) > _MOST_PREDICTIONS:
        raise SuiteError(f"there are {len(formulas):,} predictions; a suite has at most {_MOST_PREDICTIONS}")
    spoken = tuple(dict.fromkeys(region for each in formulas for region in regions(parse(each))))
    for item in suite["items"]:
        number = str(item["item_number"])
        _check(spoken, number, item["conditions"])
        for condition in item["conditions"]:
            text, places, empty = _joined(condition["regions"])
            name = str(condition["condition_name"])
            tags = {"item": number, "set": f"{title}/{number}", "condition": name, **more, **_formula_tags(formulas)}
            tags |= {"empty_regions": " ".join(empty)} if empty else {}
            yield Sentence(f"{title}/{number}/{name}", text, regions=places, tags=tags)


def _check(spoken: Iterable[Region], item: str, conditions: list[Mapping[str, Any]]) -> None:
    """Refuse a prediction about a condition or a region that an item lacks."""
    has = {
        str(condition["condition_name"]): {"*", *(str(each["region_number"]) for each in condition["regions"])}
        for condition in conditions
    }
    for region in spoken:
        if region.condition not in has:
            raise SuiteError(
                f"a prediction speaks of {region}, but item {item} has no condition {region.condition!r}; "
                f"it has {', '.join(has)}"
            )
        if region.number not in has[region.condition]:
            raise SuiteError(f"a prediction speaks of {region}, but item {item} has no such region")


def _joined(parts: list[Mapping[str, Any]]) -> tuple[str, dict[str, Span], list[str]]:
    """Return the text of all regions, where each stands in it, and those without text."""
    text = ""
    places: dict[str, Span] = {}
    empty: dict[str, None] = {}
    for region in parts:
        number, content = str(region["region_number"]), region["content"].strip()
        if number in places or number in empty:
            raise SuiteError(f"region {number} comes twice in {text!r}")
        if not content:
            empty[number] = None
            continue
        if text and content[0] not in _MARKS:
            text += " "
        places[number] = len(text), len(text) + len(content)
        text += content
    return text, places, list(empty)
