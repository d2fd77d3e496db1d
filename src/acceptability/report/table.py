"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from acceptability.comparing import Comparison
from acceptability.correlating import Correlated
from acceptability.errors import visible
from acceptability.types import Result


def result_table(results: Sequence[Result], title: str | None = None) -> Table:
    """Return results as a table, one row each, with intervals; what all share stands above it."""
    names = [name for name in ("suite", "measure", "reduction") if len({getattr(each, name) for each in results}) > 1]
    shared = [getattr(results[0], name) for name in ("suite", "measure", "reduction") if name not in names]
    table = titled(title or ", ".join(filter(None, shared)))
    with_groups = any(result.group for result in results)
    for name in ("model", *names, *(["group"] if with_groups else [])):
        table.add_column(name, overflow="fold")
    for name in ("value", "95 % interval", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        cells = [result.model, *(getattr(result, name) for name in names)]
        cells += [result.group or "all"] if with_groups else []
        add_row(table, *cells, number(result.value), interval_text(result.low, result.high), str(result.n))
    return table


def group_table(results: Sequence[Result], title: str | None = None) -> Table:
    """Return one measure's grouped results, a row each group and a column each model."""
    models = list(dict.fromkeys(result.model for result in results))
    groups = list(dict.fromkeys(result.group or "all" for result in results))
    cells = {(result.group or "all", result.model): result for result in results}
    table = titled(title)
    table.add_column("group", overflow="fold")
    for model in models:
        table.add_column(plain(model), justify="right", overflow="fold")
    for group in groups:
        found = [cells.get((group, model)) for model in models]
        add_row(table, group.partition("=")[2] or group, *map(_short, found))
    return table


def _short(result: Result | None) -> str:
    if result is None or result.value is None:
        return "–"
    if result.low is None or result.high is None:
        return f"{result.value:.3f}"
    return f"{result.value:.3f} [{result.low:.2f}, {result.high:.2f}]"


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return comparisons as a table, one row each; what all share stands above it."""
    names = [name for name in ("measure", "second") if len({getattr(each, name) for each in comparisons}) > 1]
    like = comparisons[0]
    shared = [like.measure] if "measure" not in names else []
    shared += [f"{like.first} against {like.second if 'second' not in names else 'others'}"]
    table = titled(", ".join(shared))
    with_groups = any(each.group for each in comparisons)
    for name in (*names, *(["group"] if with_groups else [])):
        table.add_column(name, overflow="fold")
    figures = ["first", "second", "difference", "95 % interval", "p"]
    figures += ["Holm", "BH"] if with_groups else []
    for name in (*figures, "only first", "only second", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in comparisons:
        cells = [getattr(each, name) for name in names]
        cells += [_group(each.group)] if with_groups else []
        cells += [number(each.first_value), number(each.second_value), _signed(each.difference)]
        cells += [interval_text(each.low, each.high), p_text(each.p)]
        cells += [p_text(each.holm), p_text(each.benjamini_hochberg)] if with_groups else []
        add_row(table, *cells, _count(each.only_first), _count(each.only_second), str(each.n))
    return table


def correlation_table(found: Sequence[Correlated], title: str) -> Table:
    """Return correlations as a table, one row each."""
    table = titled(title)
    for name in ("first", "second"):
        table.add_column(name, overflow="fold")
    for name in ("r", "95 % interval", "p", "Holm", "BH", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        ps = map(p_text, (each.p, each.holm, each.benjamini_hochberg))
        add_row(table, each.first, each.second, number(each.r), interval_text(each.low, each.high), *ps, str(each.n))
    return table


def _group(name: str | None) -> str:
    return (name or "all").partition("=")[2] or name or "all"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}"


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


def p_text(p: float | None) -> str:
    """Return a p value for a table.

    >>> p_text(0.0312), p_text(0.000004), p_text(None)
    ('.031', '<.001', '–')
    """
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def titled(title: str | None) -> Table:
    """Return an empty table below its title."""
    shown = plain(title, style="table.title") if title else None
    return Table(title=shown, title_justify="left", header_style="bold", pad_edge=False)


def plain(text: str, style: str = "") -> Text:
    """Return a text as it stands: brackets in a sentence or a model's name are no markup, and nothing is a command."""
    return Text(visible(text), style=style)


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text."""
    table.add_row(*map(plain, cells))


def footnotes(results: Sequence[Result]) -> list[str]:
    """Return what a table cannot show: why a value is undefined, what was left out, the signatures."""
    reasons = [f"{result.measure} {result.group or 'all'}: {result.reason}" for result in results if result.reason]
    notes = [f"{result.measure} {result.group or 'all'}: {note}" for result in results for note in result.notes]
    signatures = [result.signature for result in results if not result.group]
    return list(dict.fromkeys([*reasons, *notes, *signatures]))


def number(value: float | None) -> str:
    """Return a number for a table; a dash where it is undefined.

    >>> number(0.5), number(None)
    ('0.5000', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval for a table."""
    return "–" if low is None or high is None else f"{low:.4f} … {high:.4f}"
