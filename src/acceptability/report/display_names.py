"""What measures, reductions and groups are called in tables for people, and how their numbers are printed.

The names that users type, which signatures and ``--json`` have, are the names of code: ``PairAccuracy(ties=0.0)``,
``lp``, ``subject_verb_agreement``. Tables say "Pair accuracy", "log-probability" and "Subject–verb agreement".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature

from acceptability import registry
from acceptability.errors import AcceptabilityError, SpecError
from acceptability.specs import OptionValue, ParsedSpec, format_parsed_spec, parse_spec

_MEASURES = {
    "PairAccuracy": "Pair accuracy",
    "AbsolutePair": "Absolute pair accuracy",
    "GradientPair": "Gradient pair accuracy",
    "PairCorrelation": "Pair correlation",
    "UnpairedAUC": "Unpaired AUC",
    "SetAccuracy": "Set accuracy",
    "ADC": "Acceptability delta criterion",
    "ADCArea": "Area under the ADC curve",
    "DeltaCorrelation": "Correlation of deltas",
    "PBC": "Point-biserial r",
    "Pearson": "Pearson's r",
    "Spearman": "Spearman's ρ",
    "Kendall": "Kendall's τ",
    "ClozePair": "Cloze pair accuracy",
}
_REDUCTIONS = {
    "lp": "log-probability",
    "mean_lp": "mean log-probability",
    "pen_lp": "PenLP",
    "slln_lp": "SLLN-LP",
    "slor": "SLOR",
    "norm_lp_sub": "Norm LP (Sub)",
    "norm_lp_div": "Norm LP (Div)",
    "word_lp_min": "Word LP (Min)",
    "word_lp_mean": "Word LP (Mean)",
    "word_lp_mean_q1": "Word LP (Mean-Q1)",
    "word_lp_mean_q2": "Word LP (Mean-Q2)",
    "morcela": "MORCELA",
    "log_odds": "log-odds",
    "p_acceptable": "probability of acceptable",
    "signed_confidence": "signed confidence",
}
# Phenomena whose name is more than its words.
_GROUPS = {
    "anaphor_agreement": "Anaphor agreement",
    "anaphor_gender_agreement": "Anaphor–gender agreement",
    "anaphor_number_agreement": "Anaphor–number agreement",
    "control_raising": "Control and raising",
    "determiner_noun_agreement": "Determiner–noun agreement",
    "filler_gap": "Filler–gap dependencies",
    "filler_gap_dependency": "Filler–gap dependencies",
    "subject_verb_agreement": "Subject–verb agreement",
    "syntax_semantics": "Syntax and semantics",
}
_WORDS = {
    "npi": "NPI",
    "wh": "wh",
    "vp": "VP",
    "np": "NP",
    "pp": "PP",
    "adj": "adjective",
    "sv": "SV",
    "coref": "coreference",
}
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+\Z")
# Tags whose values are names of phenomena; those of others, such as ``source=bnc``, stay as they are unless they have
# an underscore, which no word has.
_PHENOMENON_TAGS = ("phenomenon", "field", "paradigm", "category", "circuit")
_WORD = re.compile(r"[a-z]{4,}\Z")
_MACRO = re.compile(r"macro\((.*)\)\Z")
# The columns of rows that a measure counts as right, whose mean is a share.
_SHARE_COLUMNS = ("correct", "met", "holds", "both")


def name_measure(spec: str) -> str:
    """Return what a measure is called, with those of its options that are not the default.

    >>> name_measure("PairAccuracy(ties=0.0)"), name_measure("PairAccuracy(ties=0.5)"), name_measure("MCC()")
    ('Pair accuracy', 'Pair accuracy (ties=0.5)', 'MCC')
    """
    return _name_spec("measure", spec, _MEASURES)


def name_reduction(spec: str) -> str:
    """Return what a reduction is called, with its options.

    >>> name_reduction("lp()"), name_reduction("slor(unigrams='wordfreq:en')")
    ('log-probability', "SLOR (unigrams='wordfreq:en')")
    """
    return _name_spec("reduction", spec, _REDUCTIONS)


def name_scores(names: Sequence[str]) -> tuple[list[str], str]:
    """Return what scores are called, and the reduction that all of them have, or nothing.

    Args:
        names: The names of scores, ``MODEL REDUCTION``, or whatever the file calls them that they come from.

    >>> name_scores(["trigram lp()", "uniform lp()"])
    (['trigram', 'uniform'], 'log-probability')
    >>> name_scores(["trigram lp()", "trigram mean_lp()", "people"])
    (['trigram log-probability', 'trigram mean log-probability', 'people'], '')
    """
    parts = [_divide_score_name(name) for name in names]
    reductions = {reduction for _, reduction in parts}
    if len(reductions) == 1 and (reduction := reductions.pop()):
        return [model for model, _ in parts], name_reduction(reduction)
    return [f"{model} {name_reduction(reduction)}".rstrip() if reduction else model for model, reduction in parts], ""


def _divide_score_name(name: str) -> tuple[str, str]:
    model, _, reduction = name.rpartition(" ")
    # A reduction whose options have spaces stays part of the name.
    is_reduction = reduction.endswith(")") and reduction.partition("(")[0] in registry.names("reduction")
    return (model, reduction) if model and is_reduction else (name, "")


def _name_spec(kind: str, spec: str, names: dict[str, str]) -> str:
    try:
        parsed = parse_spec(spec)
        if parsed.name not in names and parsed.name not in registry.names(kind):
            return spec
        known = signature(registry.find(kind, parsed.name)).parameters
    # Scores from a file have the reduction that the file names, and a plug-in may be installed no longer.
    except (SpecError, AcceptabilityError):
        return spec
    options = {
        name: value
        for name, value in parsed.options.items()
        if name not in known or known[name].default != _plain(value)
    }
    name = names.get(parsed.name) or _divide_camel_case(parsed.name)
    shown = format_parsed_spec(ParsedSpec("", parsed.args, options)) if parsed.args or options else ""
    return f"{name} {shown}".rstrip()


def _plain(value: OptionValue) -> object:
    return value.name if isinstance(value, ParsedSpec) else value


def _divide_camel_case(name: str) -> str:
    """Return the name of a class in words; one that is no such name stays as it is.

    >>> _divide_camel_case("TokenDepth"), _divide_camel_case("AUC"), _divide_camel_case("exp")
    ('Token depth', 'AUC', 'exp')
    """
    words = re.findall(r"[A-Z][a-z]+", name)
    return " ".join([words[0], *map(str.lower, words[1:])]) if "".join(words) == name else name


def name_group(group: str | None) -> str:
    """Return what a group of rows is called.

    Args:
        group: ``TAG=VALUE``, ``macro(TAG)`` for the mean over groups, or None for all rows.

    >>> name_group("phenomenon=subject_verb_agreement"), name_group("phenomenon=negation"), name_group("source=bnc")
    ('Subject–verb agreement', 'Negation', 'bnc')
    >>> name_group("macro(phenomenon)"), name_group(None)
    ('Mean over phenomena', 'All')
    """
    if group is None:
        return "All"
    if macro := _MACRO.match(group):
        return f"Mean over {pluralise(macro[1])}"
    tag, equals, value = group.partition("=")
    return name_value(value, tag) if equals else group


def name_value(value: str, tag: str = "") -> str:
    """Return what a value of a tag is called: identifiers as words, anything else as it is.

    >>> name_value("npi_licensing"), name_value("wh_vs_that_no_gap"), name_value("CoLA_1.2")
    ('NPI licensing', 'Wh vs that no gap', 'CoLA_1.2')
    """
    if value in _GROUPS:
        return _GROUPS[value]
    if not _SNAKE_CASE.match(value) and not (tag in _PHENOMENON_TAGS and _WORD.match(value)):
        return value
    name = " ".join(_WORDS.get(word, word) for word in value.split("_"))
    return name[0].upper() + name[1:]


def name_groups(groups: Sequence[str | None]) -> list[str]:
    """Return what groups are called; as they are where two would be called the same.

    >>> name_groups(["kind=a_b", "kind=A b"])
    ['kind=a_b', 'kind=A b']
    """
    names = list(map(name_group, groups))
    return names if len(set(names)) == len(set(groups)) else [group or "All" for group in groups]


def name_tag(groups: Sequence[str | None]) -> str:
    """Return the tag that rows are grouped by, as the name of a column.

    >>> name_tag([None, "phenomenon=negation", "macro(phenomenon)"]), name_tag([None])
    ('phenomenon', 'group')
    """
    return next((group.partition("=")[0].replace("_", " ") for group in groups if group and "=" in group), "group")


def pluralise(tag: str) -> str:
    """Return the plural of a tag.

    >>> pluralise("phenomenon"), pluralise("field"), pluralise("category")
    ('phenomena', 'fields', 'categories')
    """
    if tag == "phenomenon":
        return "phenomena"
    return tag[:-1] + "ies" if tag.endswith("y") else tag if tag.endswith("s") else tag + "s"


def is_share(measure: str) -> bool:
    """Return whether the values of a measure are shares, which may be printed as percentages.

    >>> is_share("PairAccuracy()"), is_share("PBC()")
    (True, False)
    """
    # Imported here: commands that measure nothing start without it.
    from acceptability.measures import load_measure

    try:
        return load_measure(measure).mean_of in _SHARE_COLUMNS
    # What a correlation or a fit is of is no measure.
    except AcceptabilityError:
        return False


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are printed.

    Args:
        digits: The number of decimals.
        percent: Whether shares are printed as percentages, with two decimals fewer.
    """

    digits: int = 3
    percent: bool = False

    def of_measure(self, measure: str) -> NumberFormat:
        """Return how the values of a measure are printed, whose percentages are asked for."""
        return self if self.percent and is_share(measure) else NumberFormat(self.digits)

    def number(self, value: float | None) -> str:
        """Return a number, or a dash if there is none.

        >>> NumberFormat().number(0.64754), NumberFormat(percent=True).number(0.64754), NumberFormat().number(None)
        ('0.648', '64.8 %', '–')
        """
        return "–" if value is None else self._write(value) + " %" * self.percent

    def interval(self, low: float | None, high: float | None) -> str:
        """Return both ends of an interval in brackets, or a dash if there is none.

        >>> NumberFormat(2).interval(0.598, 0.694), NumberFormat(percent=True).interval(0.598, 0.694)
        ('[0.60, 0.69]', '[59.8, 69.4]')
        """
        return "–" if low is None or high is None else f"[{self._write(low)}, {self._write(high)}]"

    def signed(self, value: float | None) -> str:
        """Return a difference with its sign, of shares in percentage points.

        >>> NumberFormat().signed(0.0126), NumberFormat(percent=True).signed(-0.0126)
        ('+0.013', '-1.3')
        """
        return "–" if value is None else self._write(value, "+")

    def with_interval(self, value: float | None, low: float | None, high: float | None) -> str:
        """Return a number with its interval, if it has one.

        >>> NumberFormat().with_interval(0.5, 0.4, 0.6)
        '0.500 [0.400, 0.600]'
        """
        interval = self.interval(low, high)
        return self.number(value) if value is None or interval == "–" else f"{self.number(value)} {interval}"

    def _write(self, value: float, sign: str = "-") -> str:
        # z: a negative number that is rounded to zero has no sign.
        if self.percent:
            return f"{100 * value:{sign}z.{max(0, self.digits - 2)}f}"
        return f"{value:{sign}z.{self.digits}f}"


DEFAULT_STYLE = NumberFormat()
