"""Contrasts within items: every acceptable sentence of an item with every unacceptable one.

That is how LI-Adger was built (Vázquez Martínez 2021, section 4 and appendix A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acceptability.errors import SuiteError, suggest_name
from acceptability.suites.column_names import normalise_name
from acceptability.types import Contrast, Sentence, Suite, make_contrast

_SET = "set"


def pair_within_items(suite: Suite, by: str = "item") -> Suite:
    """Return the suite with the contrasts of every acceptable with every unacceptable sentence of an item added.

    Args:
        suite: The suite.
        by: The tag whose values identify the items; or several, ``paradigm/item``, if items are numbered anew in each
            paradigm. These get the derived tag ``set``, which is the sampling unit.

    >>> tags = {"item": "8"}
    >>> sentences = tuple(Sentence(str(i), f"s{i}", label=i, tags=tags) for i in (0, 1))
    >>> pair_within_items(Suite("s", sentences)).contrasts[0].id
    '1 > 0'
    """
    tags = [_find_tag(suite, tag) for tag in by.split("/")]
    _check_items(suite, tags)
    if len(tags) > 1:
        suite, tags = _join_tags(suite, tags), [_SET]
    (tag,) = tags
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        if tag in sentence.tags and sentence.label is not None:
            items.setdefault(sentence.tags[tag], []).append(sentence)
    if not items:
        raise SuiteError(f"suite {suite.name!r} has no labelled sentences with the tag {tag!r}")
    new_contrasts = [
        make_contrast(better, worse)
        for members in items.values()
        for better in members
        if better.label == 1
        for worse in members
        if worse.label == 0
    ]
    if not new_contrasts:
        raise SuiteError(f"suite {suite.name!r}: no {by} has both an acceptable and an unacceptable sentence")
    # A pair that the suite has already keeps its tags: in a union of dictionaries the right one wins.
    existing_contrasts = {(contrast.better, contrast.worse): contrast for contrast in suite.contrasts}
    all_contrasts: dict[tuple[str, str], Contrast] = {
        (contrast.better, contrast.worse): contrast for contrast in new_contrasts
    } | existing_contrasts
    # Contrasts of one item share sentences, so that they are not independent of each other.
    rows: list[Sentence | Contrast] = [*suite.sentences, *all_contrasts.values()]
    # Items that are numbered anew in each paradigm are no sampling unit by themselves, whatever their tag is called.
    inferred = tag if all(tag in row.tags for row in rows) else ""
    unit = inferred if tag == _SET else suite.unit or inferred
    return replace(suite, contrasts=tuple(all_contrasts.values()), unit=unit)


def _find_tag(suite: Suite, name: str) -> str:
    """Return the tag of a name, which may be written as in another case."""
    if name in suite.tag_names:
        return name
    matching = [tag for tag in suite.tag_names if normalise_name(tag) == normalise_name(name)]
    if len(matching) == 1:
        return matching[0]
    tag_names = ", ".join(suite.tag_names) or "none"
    hint = suggest_name(name, suite.tag_names)
    raise SuiteError(
        f"suite {suite.name!r} has no labelled sentences with the tag {name!r}; its tags: {tag_names}.{hint}"
    )


def _check_items(suite: Suite, tags: Sequence[str]) -> None:
    """Raise an error if some labelled sentences have no item while others have one."""
    # In many spreadsheets an empty cell means "as above"; left out, these sentences would quietly be in no contrast.
    labelled = [sentence for sentence in suite.sentences if sentence.label is not None]
    for tag in tags:
        without = [sentence.id for sentence in labelled if tag not in sentence.tags]
        if 0 < len(without) < len(labelled):
            ids = ", ".join(without[:5]) + ", …" * (len(without) > 5)
            raise SuiteError(
                f"suite {suite.name!r}: {tag!r} is empty for {len(without)} of {len(labelled)} labelled sentences "
                f"({ids}). If empty means 'as above', fill the cells in; if these belong to no item, such as fillers, "
                "give each a value of its own"
            )


def _join_tags(suite: Suite, tags: Sequence[str]) -> Suite:
    """Return the suite with the derived tag ``set``, which has the values of several tags."""
    if _SET in suite.tag_names:
        raise SuiteError(f"suite {suite.name!r} has a tag {_SET!r} already: pair by it, or rename the column")
    sentences = tuple(
        replace(sentence, tags={**sentence.tags, _SET: "/".join(sentence.tags[tag] for tag in tags)})
        if all(tag in sentence.tags for tag in tags)
        else sentence
        for sentence in suite.sentences
    )
    return replace(suite, sentences=sentences, derived_tags=(*suite.derived_tags, _SET))


def describe_pairing(suite: Suite, by: str) -> str:
    """Return a remark on the contrasts that were made, and on the sentences that are in none."""
    paired = {member for contrast in suite.contrasts for member in (contrast.better, contrast.worse)}
    alone = len(suite.sentences) - len(paired)
    left = f"; {alone} sentences are in none" if alone else ""
    return f"{len(suite.contrasts)} contrasts by {by}{left}"
