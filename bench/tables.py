"""Results as tables: plain text for the terminal, Markdown for the page of results.

No library for tables is used, so that a machine with little more than torch and transformers can print them.
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
"""Operations per second, by precision and kind of matrix product."""


def print_case(case: Mapping[str, Any], rates: Rates) -> None:
    """Print one case."""
    print(f"\n{_title(case)}: {case['sentences']} sentences, {case['tokens']} tokens")
    print(aligned([_HEADINGS, *_rows(case, rates)]), flush=True)
    for note in _notes(case):
        print(f"note: {note}")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as columns, each as wide as its widest cell.

    >>> print(aligned([["tool", "time"], ["ours", "1.25 s"]]))
    tool    time
    ours  1.25 s
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def markdown(results: Mapping[str, Any]) -> str:
    """Return all cases as one Markdown table, with the machine, the settings and the versions."""
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
    return "unknown" if count is None else f"{count / (1 << 20):,.0f} MiB"


def _title(case: Mapping[str, Any]) -> str:
    return f"{case['shape']}, {case['match']}"


def _rate(rates: Rates, dtype: str) -> float:
    return max(rates[dtype].values())


def _rows(case: Mapping[str, Any], rates: Rates) -> list[list[str]]:
    return [[*_cells(run, _rate(rates, run["dtype"])), *_format_ratios(case, run)] for run in case["runs"]]


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


def _format_ratios(case: Mapping[str, Any], run: Mapping[str, Any]) -> tuple[str, str, str]:
    if run["name"] != "ours":
        return "", "", ""
    by_precision = {ratio["peer"]: ratio for ratio in case["ratios"] if ratio["ours"] == run["dtype"]}
    default, same = by_precision.get("float32"), by_precision.get(run["dtype"])
    return _format_ratio(default), _format_ratio(same), f"{default['difference']:.1e}" if default else ""


def _format_ratio(against: Mapping[str, Any] | None) -> str:
    if against is None:
        return ""
    return f"{against['ratio']:.2f} ({min(against['rounds']):.2f}–{max(against['rounds']):.2f})"


def _notes(case: Mapping[str, Any]) -> list[str]:
    return [note for run in case["runs"] for note in run["notes"]]
