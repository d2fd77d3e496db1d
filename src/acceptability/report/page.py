"""A report: one HTML file that opens offline from disk, with tables, figures, an item browser and references.

- ``write_report`` writes the page, ``write_paper_files`` the files for a paper. Nothing is loaded from elsewhere: the
  scripts are inline, and the page's content security policy allows only these, by their hashes.
- The item browser shows pairs of sentences, the models' results on them, and the surprisal of each token. A page holds
  a limited number of pairs: first those on which models differ, then a random sample with a fixed seed.
- References are collected for the suites, models, measures and methods of a report, as text and as BibTeX. The entries
  are in ``references.bib``, and ``references.toml`` maps names to entries.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as package_version
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from acceptability import __version__
from acceptability.errors import ReportError
from acceptability.models import list_named_models
from acceptability.paths import home_folder
from acceptability.report.export import PAGE_THEMES, can_draw, make_figures, write_csv_files, write_figures
from acceptability.report.report_data import (
    MAX_PAIRS,
    ReportData,
    Row,
    SurprisalSpan,
    format_model_name,
    read_stored_tokens,
)
from acceptability.report.result_tables import build_tables, format_latex, format_markdown
from acceptability.specs import parse_signature
from acceptability.suites.catalog import find_entries
from acceptability.types import Contrast, Suite

if TYPE_CHECKING:
    from acceptability.report.figures import VegaFigure

NO_PLOTS_NOTE = "There are no figures in this file, since altair is not installed: pip install 'acceptability[plots]'."


@dataclass(frozen=True)
class ReportHeading:
    """The head of a report.

    Args:
        title: The title of the page.
        lead: A sentence or two on what was done.
        models: The name and a description of each model.
    """

    title: str
    lead: str = ""
    models: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class PaperFiles:
    """Where to write the files for a paper; None for what is not wanted.

    Args:
        figures: A folder for the figures.
        csv: A folder for the rows of results and figures.
        latex, markdown: Files for the tables.
        bibtex: A file for the references.
    """

    figures: Path | None = None
    csv: Path | None = None
    latex: Path | None = None
    markdown: Path | None = None
    bibtex: Path | None = None


def write_report(path: Path, heading: ReportHeading, report_data: ReportData, *, max_pairs: int = MAX_PAIRS) -> Path:
    """Write a report and return its path.

    Args:
        max_pairs: The largest number of pairs in the item browser.
    """
    page = render_report(
        heading,
        report_data,
        make_figures(report_data) if can_draw() else [],
        build_browser(report_data, max_pairs=max_pairs),
    )
    return _write_text(path, page)


def write_paper_files(report_data: ReportData, files: PaperFiles) -> list[Path]:
    """Write the files for a paper, and return their paths."""
    paths: list[Path] = []
    if files.figures or files.csv:
        # The CSV files include the rows of the figures, which need the packages that draw. Without these packages, a
        # request for figures is an error, and one for CSV files is not.
        figures = make_figures(report_data) if files.figures or can_draw() else []
        paths += write_figures(files.figures, figures) if files.figures else []
        paths += write_csv_files(files.csv, report_data, figures) if files.csv else []
    if files.latex:
        paths.append(_write_text(files.latex, format_latex(build_tables(report_data))))
    if files.markdown:
        paths.append(_write_text(files.markdown, format_markdown(build_tables(report_data))))
    if files.bibtex:
        paths.append(_write_text(files.bibtex, format_bibtex(report_data)))
    return paths


def _write_text(path: Path, text: str) -> Path:
    try:
        # Sentences may hold lone surrogates, which no encoding can write. Unix newlines, so that the same report has
        # the same bytes, and the scripts the same hashes, on every system.
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
    return path.resolve()


def describe_models(report_data: ReportData) -> list[tuple[str, str]]:
    """Return the name and a description of each model of a report that has a name of its own."""
    model_names = {str(row["model"]) for row in report_data.results}
    return [
        (model.name, f"{model.about} ({model.licence})")
        for model in list_named_models().values()
        if model.name in model_names
    ]


def render_report(
    heading: ReportHeading, report_data: ReportData, figures: Sequence[VegaFigure], items: PairBrowser | None
) -> str:
    """Return the page as HTML."""
    # Vega is most of the size of a page, and of no use without figures.
    scripts = [*([_bundle_vega()] if figures else []), _read_template_file("report.js")]
    # Not escaped by the template, since neither can hold anything harmful: the style is a file of the package, and in
    # the JSON nothing can end its element.
    style, data = _read_template_file("report.css"), dump_script_json(_make_script_data(figures, items))
    safe_style = Markup(style)  # nosec B704
    safe_data = Markup(data)  # nosec B704
    rendered = (
        _make_environment()
        .get_template("report.html")
        .render(
            heading=heading,
            runs=report_data.runs,
            notes=[*report_data.notes, *([] if can_draw() else [NO_PLOTS_NOTE]), *_collect_row_notes(report_data)],
            grids=build_tables(report_data),
            figures=figures,
            items=items,
            signatures=report_data.signatures,
            citations=collect_citations(report_data),
            bibtex=format_bibtex(report_data),
            version=__version__,
            style=safe_style,
            scripts=list(map(Markup, scripts)),
            policy=_make_policy(scripts),
            data=safe_data,
        )
    )
    return str(rendered)


def _make_environment() -> Environment:
    return Environment(
        loader=PackageLoader("acceptability.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _make_script_data(figures: Sequence[VegaFigure], items: PairBrowser | None) -> Mapping[str, Any]:
    """Return the data of the page's scripts: the charts with their rows, and the pairs."""
    return {
        "themes": PAGE_THEMES,
        "figures": [{"name": figure.name, "spec": figure.spec, **_split_columns(figure)} for figure in figures],
        "items": pack_browser(items) if items else None,
    }


def _split_columns(figure: VegaFigure) -> dict[str, object]:
    """Return the rows of a figure as lists, with the names of the columns once instead of in every row."""
    names = list(dict.fromkeys(name for row in figure.rows for name in row))
    return {"columns": names, "rows": [[_round_number(row.get(name)) for name in names] for row in figure.rows]}


def _round_number(cell: object) -> object:
    """Return a number with six significant digits, more than a chart can show, to keep the page small."""
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def _collect_row_notes(report_data: ReportData) -> list[str]:
    by_question: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in report_data.results:
        by_question[row["measure"], row.get("group"), row.get("suite")].append(row)
    notes = []
    for (measure, *_), rows in by_question.items():
        split = [(row.get("notes") or "").split("; ") for row in rows]
        for row, note in (
            (row, note) for row, row_notes in zip(rows, split, strict=True) for note in row_notes if note
        ):
            # How many words are unknown, or which threshold was fitted, differs between models.
            is_shared = all(note in other for other in split)
            notes.append(f"{measure}: {note}" if is_shared else f"{format_model_name(row)}, {measure}: {note}")
    return list(dict.fromkeys(notes))


def _read_template_file(name: str) -> str:
    return files("acceptability.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")


@cache
def _bundle_vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script for the inside of a page."""
    # Imported here: they are optional, and take most of a second.
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    # Kept, since putting it together takes a second, and the same versions always give the same script.
    kept_name = f"vega-lite-{version}-vl-convert-{package_version('vl-convert-python')}.js"
    path = home_folder() / "parsed" / kept_name
    if (kept := _read_kept_script(path)) is not None:
        return kept
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    # An HTML parser would end the script at the first "</script" within it. It also drops carriage returns, after which
    # the hash in the policy would not match.
    script = bundle.replace("</script", r"<\/script").replace("\r", "")
    _keep_script(path, script)
    return script


def _read_kept_script(path: Path) -> str | None:
    """Return a script that was kept with its hash; None if there is none, or it is not whole."""
    with suppress(OSError, ValueError):
        digest, _, script = path.read_text(encoding="utf-8").partition("\n")
        if hashlib.sha256(script.encode()).hexdigest() == digest:
            return script
    return None


def _keep_script(path: Path, script: str) -> None:
    # Where it cannot be kept, it is put together each time. Renamed, so that nobody reads half of it.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(f"{hashlib.sha256(script.encode()).hexdigest()}\n{script}", encoding="utf-8", newline="\n")
        draft.replace(path)


def _make_policy(scripts: Sequence[str]) -> str:
    """Return the content security policy of the page: only these scripts run, and nothing is loaded.

    It holds even if a sentence, a model's name or a signature got unescaped into the page.
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


class PairOutcome(NamedTuple):
    """A model's result on a pair.

    Args:
        gap: The score of the better sentence minus that of the worse one, in the model's own units.
        correct: The credit that the measure gives for the pair, from 0 to 1.
    """

    gap: float
    correct: float


@dataclass(frozen=True)
class BrowserPair:
    """A pair of sentences with the models' results on it, for the item browser."""

    suite: str
    ids: tuple[str, str]
    texts: tuple[str, str]
    tags: Mapping[str, str]
    outcomes: Mapping[str, PairOutcome]

    @property
    def id(self) -> str:
        """The id of the contrast."""
        return " > ".join(self.ids)

    @property
    def models_differ(self) -> bool:
        """Whether models get different credit for the pair."""
        return len({outcome.correct for outcome in self.outcomes.values()}) > 1


@dataclass(frozen=True)
class PairBrowser:
    """The pairs of the item browser.

    Args:
        total: The number of pairs in all, of which ``pairs`` may hold only some.
        tokens: The tokens with surprisals by model, and then by suite and sentence id, as far as they are stored.
    """

    models: tuple[str, ...]
    pairs: tuple[BrowserPair, ...]
    total: int
    tokens: Mapping[str, Mapping[tuple[str, str], Sequence[SurprisalSpan]]]

    @property
    def about(self) -> str:
        """How many pairs the page holds, and which."""
        if self.total <= len(self.pairs):
            return f"All {self.total:,} pairs are here."
        differing = sum(pair.models_differ for pair in self.pairs)
        return (
            f"{len(self.pairs):,} of {self.total:,} pairs are here: first those on which models differ "
            f"({differing:,}), then a sample (seed 0). The command acceptability serve shows all."
        )

    @property
    def shading(self) -> str:
        """What the shading of tokens means, and for which models there is none."""
        lacking = [name for name in self.models if name not in self.tokens]
        if not lacking:
            text = "Shading: the surprisal of each token in bits; the stronger the colour, the more surprising."
            spans = chain.from_iterable(spans for by_sentence in self.tokens.values() for spans in by_sentence.values())
            return f"{text} Underlined: not in the model's vocabulary." if any(s.is_unknown for s in spans) else text
        return (
            f"No surprisals of single tokens are stored for {', '.join(lacking)} (a classifier has none; the scores "
            "of a file, of a region, or of another home are not in this store)."
        )


def build_browser(report_data: ReportData, *, max_pairs: int = MAX_PAIRS) -> PairBrowser | None:
    """Return the pairs of a report; None if no row is about a pair whose sentences are known.

    Args:
        max_pairs: The largest number of pairs.
    """
    all_pairs = list(_iterate_pairs(report_data))
    if not all_pairs:
        return None
    chosen_pairs = [_build_pair(pair) for pair in choose_pairs(all_pairs, max_pairs)]
    models = tuple(dict.fromkeys(name for pair in all_pairs for name in pair.outcomes))
    tokens: dict[str, dict[tuple[str, str], Sequence[SurprisalSpan]]] = {}
    for name, suite in report_data.suites.items():
        # Only the sentences of the chosen pairs are looked up: the store may hold millions of others.
        ids = {member for pair in chosen_pairs if pair.suite == name for member in pair.ids}
        sentences = [sentence for sentence in suite.sentences if sentence.id in ids]
        for model, model_tokens in read_stored_tokens(
            suite, sentences, _find_model_signatures(report_data, name)
        ).items():
            tokens.setdefault(model, {}).update({(name, sentence): spans for sentence, spans in model_tokens.items()})
    return PairBrowser(models, tuple(chosen_pairs), len(all_pairs), tokens)


class _PairRow(NamedTuple):
    """A contrast with the models' results on it. Most pairs of a large suite are not chosen, and need no texts."""

    suite: Suite
    name: str
    contrast: Contrast
    outcomes: Mapping[str, PairOutcome]

    @property
    def models_differ(self) -> bool:
        return len({outcome.correct for outcome in self.outcomes.values()}) > 1


class _Pair(Protocol):
    @property
    def models_differ(self) -> bool: ...


_SomePair = TypeVar("_SomePair", bound=_Pair)


def choose_pairs(pairs: Sequence[_SomePair], max_pairs: int) -> list[_SomePair]:
    """Return at most ``max_pairs`` pairs: those on which models differ, then a sample of the others, both in order."""
    if len(pairs) <= max_pairs:
        return list(pairs)
    # A fixed seed, so that the same run always gives the same page.
    rng = random.Random(0)
    differing, same = list[int](), list[int]()
    for index, pair in enumerate(pairs):
        (differing if pair.models_differ else same).append(index)
    first = sorted(rng.sample(differing, min(max_pairs, len(differing))))
    rest = sorted(rng.sample(same, min(max_pairs - len(first), len(same))))
    return [pairs[index] for index in (*first, *rest)]


def _iterate_pairs(report_data: ReportData) -> Iterator[_PairRow]:
    """Yield every pair with the models' results, by the first measure of its suite that is about pairs."""
    measure_by_suite: dict[str, str] = {}
    outcomes: dict[str, dict[str, dict[str, PairOutcome]]] = {name: {} for name in report_data.suites}
    for row in report_data.units:
        of_suite = outcomes.get(row.get("suite", ""))
        outcome = None if of_suite is None else _read_outcome(row)
        # The first measure of pairs wins: two of them may disagree on which pairs are right.
        if (
            of_suite is not None
            and outcome
            and measure_by_suite.setdefault(row["suite"], row["measure"]) == row["measure"]
        ):
            of_suite.setdefault(row["unit"], {})[format_model_name(row)] = outcome
    for name, suite in report_data.suites.items():
        for contrast in suite.contrasts if outcomes[name] else ():
            if found := outcomes[name].get(contrast.id):
                yield _PairRow(suite, name, contrast, found)


def _build_pair(row: _PairRow) -> BrowserPair:
    ids = row.contrast.better, row.contrast.worse
    texts = row.suite.by_id[ids[0]].text, row.suite.by_id[ids[1]].text
    return BrowserPair(row.name, ids, texts, dict(row.contrast.tags), dict(row.outcomes))


def _read_outcome(row: Row) -> PairOutcome | None:
    """Return a model's result on a pair; None for a row of another measure."""
    # ADC has the column "met" where measures of pairs have "correct".
    correct = row.get("correct", row.get("met"))
    if correct is None or "unit" not in row:
        return None
    # Measures of targets have the surprisals of both, of which the lower one is the better.
    gap = row["gap"] if "gap" in row else row["worse"] - row["better"] if "worse" in row else None
    return None if gap is None else PairOutcome(gap, correct)


def _find_model_signatures(report_data: ReportData, suite: str) -> dict[str, str]:
    """Return the signature of each model's scores on a suite, by the name of the model."""
    signatures = {
        format_model_name(row): parse_signature(row["signature"]).get("model", "")
        for row in report_data.results
        if row["suite"] == suite and row.get("signature")
    }
    for row in report_data.comparisons:
        # A comparison has one signature for both of its models.
        parts = parse_signature(row["signature"]).get("model", "").split(" minus ")
        if row["suite"] == suite and len(parts) == 2:
            for side, signature in zip(("first", "second"), parts, strict=True):
                # Results come first: their signatures are of one model each.
                signatures.setdefault(format_model_name({"model": row[side]}), signature)
    # A "#" precedes a region, for which the stored tokens are not those of the whole sentence.
    return {name: signature for name, signature in signatures.items() if "#" not in signature.rpartition(".")[2]}


def pack_browser(pair_browser: PairBrowser) -> dict[str, Any]:
    """Return the data of the item browser for its script, with tokens as flat lists of numbers."""
    return {
        "models": list(pair_browser.models),
        "shaded": list(pair_browser.tokens),
        "pairs": [
            {
                "id": pair.id,
                "suite": pair.suite,
                "texts": list(pair.texts),
                "tags": dict(pair.tags),
                "gaps": [_round_gap(pair.outcomes.get(name)) for name in pair_browser.models],
                "right": [_get_credit(pair.outcomes.get(name)) for name in pair_browser.models],
                "tokens": [
                    [_flatten_tokens(pair_browser, model, pair.suite, member) for model in pair_browser.tokens]
                    for member in pair.ids
                ],
            }
            for pair in pair_browser.pairs
        ],
    }


def _round_gap(outcome: PairOutcome | None) -> float | None:
    return None if outcome is None else round(outcome.gap, 3)


def _get_credit(outcome: PairOutcome | None) -> float | None:
    return None if outcome is None else outcome.correct


def _flatten_tokens(pair_browser: PairBrowser, model: str, suite: str, sentence: str) -> list[float]:
    """Return start, end, surprisal in bits, and 1 if it is unknown, of each token, in one list."""
    # Flat and with one decimal: tokens are the largest part of a page, and the shading shows no more.
    tokens = pair_browser.tokens[model].get((suite, sentence), ())
    return [
        number
        for span in tokens
        for number in (span.start, span.end, round(span.surprisal_bits, 1), int(span.is_unknown))
    ]


def dump_script_json(data: object) -> str:
    """Return JSON for the inside of a ``<script>`` element, which nothing in it can end.

    >>> dump_script_json("</script>&")
    '"\\\\u003c/script\\\\u003e\\\\u0026"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # HTML ends a script at "</script>" even within a JSON string. The two line separators are line ends in JavaScript.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


# An entry per line, which needs no parser of BibTeX.
_ENTRY = re.compile(r"@\w+\{([^,]+),.*")


@cache
def read_references() -> Mapping[str, str]:
    """Return every BibTeX entry by its key."""
    text = files("acceptability.report").joinpath("references.bib").read_text(encoding="utf-8")
    lines_by_key = {match[1]: line for line in text.splitlines() if (match := _ENTRY.fullmatch(line))}
    return {key: _format_entry(line) for key, line in lines_by_key.items()}


def _format_entry(line: str) -> str:
    """Return an entry with one field per line."""
    head, *fields = re.split(r", (?=\w+ = \{)", line)
    return ",\n  ".join((head, *fields)).removesuffix("}") + ",\n}"


@cache
def _read_reference_lists() -> Mapping[str, Any]:
    return tomllib.loads(files("acceptability.report").joinpath("references.toml").read_text(encoding="utf-8"))


def find_citation_keys(report_data: ReportData) -> list[str]:
    """Return the keys of the references to cite, without repetition: suites, models, measures, papers and methods."""
    return list(dict.fromkeys(_iterate_citation_keys(report_data)))


def _iterate_citation_keys(report_data: ReportData) -> Iterator[str]:
    lists = _read_reference_lists()
    fields = [parse_signature(signature) for signature in report_data.signatures]
    for suite in _find_suite_names(report_data):
        above = [name for name in lists["suites"] if f"{suite}/".startswith(f"{name}/")]
        # The longest match is the most specific: cola/fava is by other authors than cola.
        yield from lists["suites"][max(above, key=len)] if above else ()
    for model in dict.fromkeys(named.get("model", "") + named.get("models", "") for named in fields):
        for part, cited in lists["models"].items():
            yield from cited if part in model.lower() else ()
        for name, cited in lists["reductions"].items():
            yield from cited if f".{name}(" in model else ()
    for measure in dict.fromkeys(named["measure"].partition("(")[0] for named in fields):
        yield from lists["measures"].get(measure, ())
    for study in _find_study_names(report_data):
        yield from lists["studies"].get(study, ())
    yield from _iterate_method_keys(report_data, fields)
    yield from lists["always"]


def _iterate_method_keys(report_data: ReportData, fields: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the keys of the methods behind intervals and corrections."""
    lists = _read_reference_lists()["methods"]
    for interval_method in dict.fromkeys(named.get("ci", "").removeprefix("paired ") for named in fields):
        yield from (key for name, cited in lists.items() if interval_method.startswith(name) for key in cited)
    for row in (*report_data.comparisons, *report_data.correlations):
        yield from (key for name in ("holm", "benjamini_hochberg") if row.get(name) is not None for key in lists[name])


def _find_suite_names(report_data: ReportData) -> list[str]:
    signed = [
        # References are listed by the name of the suite in the catalog, which has neither hash nor derived targets.
        parse_signature(signature).get("suite", "").rpartition("#")[0].partition("+targets(")[0]
        for signature in report_data.signatures
    ]
    return list(dict.fromkeys(filter(None, (*signed, *(row["suite"] for row in report_data.results)))))


def _find_study_names(report_data: ReportData) -> list[str]:
    words = [run.arguments.split() for run in report_data.runs if run.command == "study"]
    return [arguments[1] for arguments in words if len(arguments) > 1]


def collect_citations(report_data: ReportData) -> list[str]:
    """Return the references of the suites as text, from the catalog."""
    return list(
        dict.fromkeys(entry.citation for name in _find_suite_names(report_data) for entry in find_entries(name))
    )


def format_bibtex(report_data: ReportData) -> str:
    """Return the BibTeX entries of the references to cite, with comments on suites and models that have none."""
    known = read_references()
    lists = _read_reference_lists()
    uncited_suites = [
        name
        for name in _find_suite_names(report_data)
        if not any(f"{name}/".startswith(f"{listed}/") for listed in lists["suites"])
    ]
    comments = [
        f"% {_strip_special(name)}: a suite of your own; cite where its sentences come from." for name in uncited_suites
    ]
    comments += ["% Models from elsewhere: cite what their cards ask for."]
    return "\n".join((*comments, *(known[key] for key in find_citation_keys(report_data)))) + "\n"


def _strip_special(text: str) -> str:
    # A newline in the name of a suite would end the comment, and what follows would be read as BibTeX.
    return re.sub(r"[^\w./:-]+", " ", text)
