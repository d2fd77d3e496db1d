"""Results as people read them: a table on the terminal, and Markdown for the page of results.

Plain text, so that a machine with little more than torch and transformers can print it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_HEADINGS = (
    "tool",
    "precision",
    "batch",
    "time",
    "sentences/s",
    "tokens/s",
    "extra",
    "peak",
    "share",
    "ratio",
    "same precision",
    "difference",
)


Rates = Mapping[str, Mapping[str, float]]
"""Operations per second, by precision and way."""


def shown(case: Mapping[str, Any], rates: Rates) -> None:
    """Print one case."""
    print(f"\n{_title(case)}: {case['sentences']} sentences, {case['tokens']} tokens")
    print(aligned([_HEADINGS, *_rows(case, rates)]), flush=True)
    for note in _notes(case):
        print(f"note: {note}")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells in columns, each as wide as its widest cell.

    >>> print(aligned([["tool", "time"], ["ours", "1.25 s"]]))
    tool    time
    ours  1.25 s
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def markdown(results: Mapping[str, Any]) -> str:
    """Return all cases as one Markdown table, with what a reader needs to know of the run."""
    settings, cases = results["settings"], results["cases"]
    versions = {name: number for case in cases for run in case["runs"] for name, number in run["versions"].items()}
    lines = [
        f"{results['machine']}; {settings['device']}, {settings['threads']} threads; sentences of {results['suite']}; "
        f"{settings['rounds']} interleaved rounds. "
        + ", ".join(f"{name} {versions[name]}" for name in sorted(versions)),
        "",
        "| model, conventions | " + " | ".join(_HEADINGS) + " |",
        "| --- " * (len(_HEADINGS) + 1) + "|",
    ]
    for case in cases:
        lines += [f"| {_title(case)} | " + " | ".join(cells) + " |" for cells in _rows(case, results["matrix_rates"])]
    rates = [f"{dtype} {_rate(results['matrix_rates'], dtype) / 1e9:,.0f} GFLOP/s" for dtype in settings["dtypes"]]
    lines += ["", f"Matrix products: {', '.join(rates)}.", ""]
    lines += [f"- {note}" for note in dict.fromkeys(note for case in cases for note in _notes(case))]
    return "\n".join(lines) + "\n"


def megabytes(count: int | None) -> str:
    """Return bytes as mebibytes.

    >>> megabytes(3 << 20)
    '3 MiB'
    """
    return "not told" if count is None else f"{count / (1 << 20):,.0f} MiB"


def _title(case: Mapping[str, Any]) -> str:
    return f"{case['shape']}, {case['match']}"


def _rate(rates: Rates, dtype: str) -> float:
    return max(rates[dtype].values())


def _rows(case: Mapping[str, Any], rates: Rates) -> list[list[str]]:
    return [[*_cells(run, _rate(rates, run["dtype"])), *_against(case, run)] for run in case["runs"]]


def _cells(run: Mapping[str, Any], rate: float) -> list[str]:
    return [
        run["name"],
        run["dtype"],
        "own" if run["name"] == "ours" else str(run["batch"]),
        f"{run['median']:.2f} s",
        f"{run['sentences_per_second']:,.1f}",
        f"{run['tokens_per_second']:,.0f}",
        megabytes(run["extra"]),
        megabytes(run["peak"]),
        f"{run['operations_per_second'] / rate:.0%}",
    ]


def _against(case: Mapping[str, Any], run: Mapping[str, Any]) -> tuple[str, str, str]:
    if run["name"] != "ours":
        return "", "", ""
    found = {each["peer"]: each for each in case["ratios"] if each["ours"] == run["dtype"]}
    default, same = found.get("float32"), found.get(run["dtype"])
    return _spread(default), _spread(same), f"{default['difference']:.1e}" if default else ""


def _spread(against: Mapping[str, Any] | None) -> str:
    if against is None:
        return ""
    return f"{against['ratio']:.2f} ({min(against['rounds']):.2f}–{max(against['rounds']):.2f})"


def _notes(case: Mapping[str, Any]) -> list[str]:
    return [note for run in case["runs"] for note in run["notes"]]
