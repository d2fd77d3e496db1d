"""Suites with regions: SyntaxGym, and the licensing of reflexive pronouns (Hu, Chen and Levy 2020).

SyntaxGym (Hu, Gauthier, Qian, Wilcox and Levy 2020; ``read_syntaxgym``, and ``read_syntaxgym_json`` for a
user's own file): items in conditions, divided into regions. There is one suite per file. Regions have
their published numbers; the tags are the item (also as ``set``), the condition, ``prediction``
(``prediction_2``, ...), the formulas over regions and conditions that have to hold for the item, and for
published suites the paper's circuit. Published outcomes count items from 0, the files from 1.

Reflexives (``read_hu_reflexive``): five experiments, three pronouns. A set holds the sentences of an item in
three classes: baseline, distractor, ungrammatical. The region ``target`` is the pronoun. Ids:
``EXPERIMENT/PRONOUN/ROW``. Published accuracies of exp1a themselves are based on the column ``grammatical``,
which contradicts the sentences; it is kept as a tag of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from acceptability.errors import SpecError, SuiteError
from acceptability.measures.predictions import RegionTerm, iter_regions, parse_formula
from acceptability.suites.catalog import CatalogEntry
from acceptability.text.io import read_content, read_dict_rows
from acceptability.types import Sentence, Span, Suite

# A region that starts with one of these is attached to the region before it without a space.
_MARKS = ",.;:?!'’"

# Every formula is evaluated for every item, and a user's file may come from a stranger.
_MAX_PREDICTIONS = 100

# The paper's circuits, by the first part of a suite's name.
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


def read_syntaxgym(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return a published SyntaxGym suite: the sentences of all items in all conditions."""
    (content,) = files.values()
    name = entry.id.rpartition("/")[2]
    circuit = find_circuit(name)
    return _parse_suite(entry.id, content, entry.id, {"circuit": circuit} if circuit else {})


def read_syntaxgym_json(path: Path) -> Suite:
    """Return the suite in a user's own file in SyntaxGym's format."""
    content = read_content(path)
    return _parse_suite(path.stem, content, str(path), {})


def find_circuit(name: str) -> str | None:
    """Return the paper's circuit (one of six) of a published suite; None for ``nn-nv-rpl``, which is in none.

    >>> find_circuit("fgd-embed3")
    'long-distance dependencies'
    """
    return _CIRCUITS.get(name.replace("-", "_").partition("_")[0])


def _parse_suite(name: str, content: bytes, where: str, tags: Mapping[str, str]) -> Suite:
    try:
        document = json.loads(content)
        sentences = tuple(_parse_sentences(document, tags))
    # The document is not validated against a schema: what is missing or of the wrong type shows when it is read.
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where} is not a file of JSON in UTF-8: {error}") from error
    except KeyError as error:
        raise SuiteError(f"{where}: {error} is missing; expected SyntaxGym's meta, predictions and items") from error
    except (TypeError, AttributeError) as error:
        raise SuiteError(f"{where} is not in SyntaxGym's format (meta, predictions, items): {error}") from error
    except (SpecError, SuiteError) as error:
        raise SuiteError(f"{where}: {error}") from error
    # The conditions of an item share its words; the tag "set" is unique over files, while numbers of items repeat.
    return Suite(name, sentences, unit="set")


def _parse_sentences(suite: Mapping[str, Any], extra_tags: Mapping[str, str]) -> Iterator[Sentence]:
    title = str(suite["meta"]["name"])
    if (metric := suite["meta"].get("metric", "sum")) != "sum":
        raise SuiteError(f"the metric is {metric!r}; only 'sum' is known: a region's surprisal is that of its tokens")
    formulas = [prediction["formula"] for prediction in suite["predictions"]]
    if not formulas:
        raise SuiteError("there are no predictions")
    if len(formulas) > _MAX_PREDICTIONS:
        raise SuiteError(f"there are {len(formulas):,} predictions; a suite has at most {_MAX_PREDICTIONS}")
    predicted_regions = tuple(
        dict.fromkeys(region for formula in formulas for region in iter_regions(parse_formula(formula)))
    )
    for item in suite["items"]:
        number = str(item["item_number"])
        _check_regions(predicted_regions, number, item["conditions"])
        for condition in item["conditions"]:
            text, spans, empty = _join_regions(condition["regions"])
            name = str(condition["condition_name"])
            tags = {
                "item": number,
                "set": f"{title}/{number}",
                "condition": name,
                **extra_tags,
                **_build_formula_tags(formulas),
            }
            tags |= {"empty_regions": " ".join(empty)} if empty else {}
            yield Sentence(f"{title}/{number}/{name}", text, regions=spans, tags=tags)


def _build_formula_tags(formulas: list[str]) -> dict[str, str]:
    """Return the tags that hold predictions: ``prediction``, ``prediction_2``, ..."""
    return {
        "prediction" if number == 1 else f"prediction_{number}": formula
        for number, formula in enumerate(formulas, start=1)
    }


def _check_regions(predicted_regions: Iterable[RegionTerm], item: str, conditions: list[Mapping[str, Any]]) -> None:
    """Raise an error for a prediction about a condition or a region that an item lacks."""
    regions_by_condition = {
        str(condition["condition_name"]): {"*", *(str(region["region_number"]) for region in condition["regions"])}
        for condition in conditions
    }
    for region in predicted_regions:
        if region.condition not in regions_by_condition:
            raise SuiteError(
                f"a prediction refers to {region}, but item {item} has no condition {region.condition!r}; "
                f"it has {', '.join(regions_by_condition)}"
            )
        if region.number not in regions_by_condition[region.condition]:
            raise SuiteError(f"a prediction refers to {region}, but item {item} has no such region")


def _join_regions(parts: list[Mapping[str, Any]]) -> tuple[str, dict[str, Span], list[str]]:
    """Return the joined text of all regions, their spans, and the regions without text."""
    text = ""
    spans: dict[str, Span] = {}
    # A dictionary as an ordered set.
    empty: dict[str, None] = {}
    for region in parts:
        # Published regions come with and without spaces at their edges.
        number, content = str(region["region_number"]), region["content"].strip()
        if number in spans or number in empty:
            raise SuiteError(f"region {number} is repeated in {text!r}")
        # A region without text has no span in the sentence; its surprisal is the empty sum, 0.
        if not content:
            empty[number] = None
            continue
        if text and content[0] not in _MARKS:
            text += " "
        spans[number] = len(text), len(text) + len(content)
        text += content
    return text, spans, list(empty)


# Class and label follow the position of the mismatch: the published column "grammatical" contradicts it, and the
# sentences, on 1,120 rows of exp1a themselves.
_CLASSES = {
    "none": "baseline",
    "rc_subj": "distractor",
    "nonlocal_subj": "distractor",
    "distractor": "distractor",
    "matrix_subj": "ungrammatical",
    "local_subj": "ungrammatical",
    "head": "ungrammatical",
}


def read_hu_reflexive(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the reflexive stimuli of all experiments, in the order of the published surprisals."""
    sentences = (sentence for path, content in files.items() for sentence in _read_stimuli(entry, path, content))
    return Suite(entry.id, tuple(sentences))


def _read_stimuli(entry: CatalogEntry, path: str, content: bytes) -> Iterator[Sentence]:
    posix_path = PurePosixPath(path)
    experiment, pronoun = posix_path.parent.name, posix_path.stem
    for number, (_, row) in enumerate(read_dict_rows(content, f"{entry.folder}/{path}"), start=1):
        tags = {
            "experiment": experiment,
            "pronoun": pronoun,
            "item": row["item"],
            "set": f"{experiment}/{pronoun}/{row['item']}",
            "class": _CLASSES[row["mismatch_position"]],
            "mismatch_position": row["mismatch_position"],
            "mismatch_feature": row["mismatch_feature"],
            "counterbalance": row["counterbalance"],
            "grammatical": row["grammatical"],
        }
        text = row["sentence_no_eos"]
        yield Sentence(
            f"{experiment}/{pronoun}/{number}",
            text,
            label=int(tags["class"] != "ungrammatical"),
            regions={"target": _find_whole_word(row["pronoun"], text)},
            tags=tags,
        )


def _find_whole_word(word: str, text: str) -> tuple[int, int]:
    match = re.search(rf"\b{re.escape(word)}\b", text)
    assert match, f"{word!r} is not in {text!r}"
    return match.span()
