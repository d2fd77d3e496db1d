"""Options of measures, checked when a measure is made."""

from __future__ import annotations

from collections.abc import Sequence

from acceptability.errors import MeasureError


def check_count(name: str, value: object, least: int) -> None:
    """Refuse an option that is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MeasureError(f"{name} is {value!r}; expected a whole number from {least}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse an option that is none of the choices.

    >>> check_choice("ADC: tie", "positive", ("positive", "literal"))
    """
    if value not in choices:
        *most, last = map(repr, choices)
        raise MeasureError(f"{name} is {value!r}; expected {', '.join(most)} or {last}")


def check_tag_name(name: str, value: object) -> None:
    """Refuse an option that cannot be the name of a tag."""
    if not isinstance(value, str) or not value:
        raise MeasureError(f"{name} is {value!r}; expected the name of a tag")
