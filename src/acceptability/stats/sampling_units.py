"""The sampling unit of intervals, tests and folds: which tag it is, how many units there are, and what they are called.

What is resampled must be independent. A suite declares what was sampled (``Suite.unit``), and that is the default;
single rows are a choice. A unit that has one row everywhere, such as the item of a minimal pair, is the row itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acceptability.errors import MeasureError
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.resampling import count_sampling_units, have_common_units
from acceptability.types import SINGLE_ROWS, Suite, Units

FEW_UNITS = 10
"""With fewer units than this, an interval rests on a poor estimate of how units vary, and a note says so."""

# What the values of tags are called where sentences have them, and where contrasts have others.
_NAMES = {
    "construction": "constructions",
    "item": "items",
    "paradigm": "paradigms",
    "phenomenon": "phenomena",
    "set": "sets",
    "source": "sources",
    "type_group": "groups of paired types",
    "type_pair": "groups of paired types",
}
_NAMES_IN_CONTRASTS = {"type_pair": "pairs of types"}


def parse_sampling_unit(text: str | None) -> tuple[str | None, str]:
    """Return what ``Bootstrap.by`` and ``Bootstrap.within`` are for a unit as users write it.

    Args:
        text: A tag, two tags (``paradigm/item``), ``row`` for single rows, or None for the unit of the suite.

    >>> parse_sampling_unit("paradigm/item"), parse_sampling_unit("row"), parse_sampling_unit(None)
    (('paradigm', 'item'), ('', ''), (None, ''))
    """
    if text is None:
        return None, ""
    by, slash, within = text.partition("/")
    if (slash and not (by and within)) or "/" in within:
        raise MeasureError(f"the sampling unit is {text!r}; expected a tag, or two, the outer one first: paradigm/item")
    return "" if by == SINGLE_ROWS else by, within


def resolve_sampling_unit(bootstrap: Bootstrap, suite: Suite) -> Bootstrap:
    """Return the bootstrap with the suite's sampling unit where it leaves the unit open (``by=None``).

    >>> from acceptability.types import Sentence
    >>> suite = Suite("one", (Sentence("a", "Cats sleep.", tags={"item": "1"}),), unit="item")
    >>> resolve_sampling_unit(Bootstrap(), suite).by, resolve_sampling_unit(Bootstrap(by=""), suite).by
    ('item', '')
    """
    if bootstrap.by is not None:
        return bootstrap
    by, within = parse_sampling_unit(suite.unit)
    return replace(bootstrap, by=by or "", within=within)


def fit_unit_to_rows(bootstrap: Bootstrap, *all_units: Units) -> Bootstrap:
    """Return the bootstrap as it applies to some rows, such as those of a group.

    If each unit has one row only, in all of the rows given, it is that of single rows: both are the same, but rows keep
    their order, are faster to resample, and allow exact tests of independent rows. Of two levels, rows that are within
    one unit of the outer level have only the inner one.
    """
    if not bootstrap.by:
        return bootstrap
    counts = [count_sampling_units(units, bootstrap.by) for units in all_units]
    if bootstrap.within and max(counts) < 2:
        inner = "" if bootstrap.within == SINGLE_ROWS else bootstrap.within
        return fit_unit_to_rows(replace(bootstrap, by=inner, within=""), *all_units)
    is_single = all(count == len(units) for count, units in zip(counts, all_units, strict=True))
    return replace(bootstrap, by="", within="") if is_single else bootstrap


def fit_unit_to_groups(bootstrap: Bootstrap, groups: Sequence[Units], tag: str) -> Bootstrap:
    """Return the bootstrap for a mean over groups: of single rows if each unit has one row only, as `fit_unit_to_rows`.

    A unit with one row in each of several groups, such as an item in every condition, has several rows.

    Args:
        tag: The tag of the groups. If it is the sampling unit itself, the groups are what is resampled.
    """
    if bootstrap.by == tag or have_common_units(groups, bootstrap.by):
        return bootstrap
    return fit_unit_to_rows(bootstrap, *groups)


def name_sampling_units(tag: str, count: int, *, of_contrasts: bool = False) -> str:
    """Return a number of sampling units in words.

    Args:
        tag: The tag whose values they are; empty for single rows.
        count: Their number.
        of_contrasts: Whether the rows are contrasts; a tag may have other values there than in sentences.

    >>> name_sampling_units("item", 1200), name_sampling_units("genre", 12), name_sampling_units("", 500)
    ('1,200 items', "12 values of 'genre'", '500 single rows')
    """
    if not tag:
        return f"{count:,} single rows"
    names = _NAMES | _NAMES_IN_CONTRASTS if of_contrasts else _NAMES
    return f"{count:,} {names.get(tag, f'values of {tag!r}')}"


def describe_suite_unit(suite: Suite) -> str:
    """Return the sampling unit of a suite, with the number of units of its sentences and of its contrasts.

    >>> from acceptability.types import Sentence
    >>> sentences = tuple(Sentence(name, name, tags={"item": name[0]}) for name in ("a1", "a2", "b1"))
    >>> describe_suite_unit(Suite("three", sentences, unit="item"))
    'item (3 sentences in 2 items)'
    """
    if not suite.unit_tags:
        return f"{SINGLE_ROWS} (each sentence, or contrast, by itself)"
    tag = suite.unit_tags[0]
    parts = [
        f"{len(rows):,} {kind} in {name_sampling_units(tag, count, of_contrasts=kind == 'contrasts')}"
        for kind, rows in (("sentences", suite.sentences), ("contrasts", suite.contrasts))
        if (count := len({row.tags[tag] for row in rows}))
    ]
    return f"{suite.unit} ({', '.join(parts)})"


def sign_unit_count(units: Units, bootstrap: Bootstrap) -> dict[str, str]:
    """Return the field of a signature with the number of sampling units; empty for single rows."""
    return {"units": str(count_sampling_units(units, bootstrap.by))} if bootstrap.by and len(units) else {}


def note_few_units(units: Units, bootstrap: Bootstrap) -> tuple[str, ...]:
    """Return a note if there are so few sampling units that an interval from them is rough."""
    count = count_sampling_units(units, bootstrap.by)
    if not bootstrap.resamples or not bootstrap.by or not 2 <= count < FEW_UNITS:
        return ()
    return (f"only {name_sampling_units(bootstrap.by, count)} are resampled: an interval from so few is rough",)
