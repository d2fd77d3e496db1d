"""Sentences gathered into sets by a tag: a set is then one row of a measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from acceptability.errors import MeasureError, suggestion
from acceptability.protocols import Measure
from acceptability.types import Sentence, Suite, Tags


def gathered(sentences: Iterable[Sentence], tag: str) -> dict[str, list[Sentence]]:
    """Return the sentences of each value of a tag; sentences without the tag are in none.

    >>> rows = [Sentence("a", "x", tags={"set": "1"}), Sentence("b", "y", tags={"set": "1"}), Sentence("c", "z")]
    >>> {name: [each.id for each in members] for name, members in gathered(rows, "set").items()}
    {'1': ['a', 'b']}
    """
    sets: dict[str, list[Sentence]] = {}
    for each in sentences:
        if tag in each.tags:
            sets.setdefault(each.tags[tag], []).append(each)
    return sets


def shared_tags(members: Sequence[Sentence]) -> Tags:
    """Return the tags that all members of a set have alike.

    >>> shared_tags([Sentence("a", "x", tags={"set": "1", "n": "1"}), Sentence("b", "y", tags={"set": "1", "n": "2"})])
    {'set': '1'}
    """
    first, *others = members
    return {name: value for name, value in first.tags.items() if all(each.tags.get(name) == value for each in others)}


def check_has_tag(suite: Suite, measure: object, tag: str) -> None:
    """Refuse a measure that asks for a tag which no sentence of the suite has."""
    has = sorted({name for each in suite.sentences for name in each.tags})
    if tag not in has:
        raise MeasureError(
            f"suite {suite.name!r} has nothing for {measure!r} to measure: no sentence has the tag {tag!r}; "
            f"they have {', '.join(has) or 'none'}.{suggestion(tag, has)}"
        )


def row_tags(suite: Suite, measure: Measure) -> tuple[str, list[Tags]]:
    """Return what the rows of a measure are (contrasts, sentences, or sets of these), and the tags of each."""
    tag = getattr(measure, "gathered_by", "")
    if tag:
        return f"sets (by {tag})", [shared_tags(members) for members in gathered(suite.sentences, tag).values()]
    if "contrasts" in measure.needs:
        return "contrasts", [each.tags for each in suite.contrasts]
    return "sentences", [each.tags for each in suite.sentences]


def notes_on(left_out: Counter[str]) -> tuple[str, ...]:
    """Return a note on each kind of row that was left out, such as "3 sets without both classes left out".

    >>> notes_on(Counter({"sets without both classes": 3, "sentences without a label": 0}))
    ('3 sets without both classes left out',)
    """
    return tuple(f"{count} {what} left out" for what, count in left_out.items() if count)
