"""The tables of a report in LaTeX, for ``booktabs``: the best in bold, intervals small, stars for sure differences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acceptability.report.grids import Entry, Grid

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "×": r"$\times$",
    "δ": r"$\delta$",
}

PREAMBLE = "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.\n"


def escaped(text: str) -> str:
    r"""Return text that LaTeX sets as it is: nothing in it is a command.

    >>> escaped("50% of \\input{x}_1")
    '50\\% of \\textbackslash{}input\\{x\\}\\_1'
    """
    return "".join(_SIGNS.get(each, each) for each in re.sub(r"\s+", " ", text))


def latex(grids: Sequence[Grid]) -> str:
    """Return every table as a ``table`` environment."""
    return PREAMBLE + "\n".join(map(_table, grids))


def _table(grid: Grid) -> str:
    numbers = [bool(grid.rows) and all(row[place].is_number for row in grid.rows) for place in range(len(grid.header))]
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\begin{{tabular}}{{@{{}}{''.join('r' if each else 'l' for each in numbers)}@{{}}}}",
        r"\toprule",
        " & ".join(map(escaped, grid.header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{escaped(' '.join(each.rstrip('.') + '.' for each in (grid.title, *grid.notes)))}}}",
        rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', grid.name.lower()).strip('-')}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(entry: Entry) -> str:
    text = _number(entry.text) if entry.is_number else escaped(entry.text)
    text = rf"\textbf{{{text}}}" if entry.is_best else text
    text += rf"\textsuperscript{{{entry.mark}}}" if entry.mark else ""
    return text + (rf" {{\scriptsize {_number(entry.interval)}}}" if entry.interval else "")


def _number(text: str) -> str:
    """Return a number with a minus where it has a hyphen."""
    return re.sub(r"(?<![\w.])-(?=[\d.])", "$-$", escaped(text))
