"""The registry: which object each name of a reader, model, engine, measure, recipe, reduction or paper refers to.

Objects are given as ``"module:object"`` and imported on first use. Other packages register theirs
through the entry points ``acceptability.readers``, ``acceptability.models``,
``acceptability.engines``, ``acceptability.measures``, ``acceptability.recipes`` and ``acceptability.reductions``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

from acceptability.errors import SpecError, UnknownName
from acceptability.specs import RENAMED_MODEL_KINDS, ParsedSpec, parse_spec

# Strings rather than imports: looking up a name must import neither torch nor Ray, and the modules of models, measures
# and papers import this one.
_BUILTIN: dict[str, dict[str, str]] = {
    "reader": {
        "blimp": "acceptability.suites.readers.minimal_pairs:read_blimp",
        "starter": "acceptability.suites.readers.minimal_pairs:read_starter",
        "agreement": "acceptability.suites.readers.minimal_pairs:read_number_agreement",
        "other_languages": "acceptability.suites.readers.other_languages:read_other_languages",
        "hub": "acceptability.suites.readers.hub:read_hub",
        "li_adger": "acceptability.suites.readers.judgements:read_li_adger",
        "lau": "acceptability.suites.readers.judgements:read_lau",
        "sprouse2013_li": "acceptability.suites.readers.judgements:read_sprouse2013_li",
        "niu_penn2020": "acceptability.suites.readers.judgements:read_niu_penn2020",
        "syntaxgym": "acceptability.suites.readers.regions:read_syntaxgym",
        "hu_reflexive": "acceptability.suites.readers.regions:read_hu_reflexive",
        "cola": "acceptability.suites.readers.judgements:read_cola",
        "npi": "acceptability.suites.readers.judgements:read_npi",
    },
    "model": {
        "uniform": "acceptability.models.ngram.model:open_uniform",
        "ngram": "acceptability.models.ngram.model:open_model",
        "aggregate-markov": "acceptability.models.ngram.aggregate_markov:open_model",
        "recurrent": "acceptability.models.recurrent:open_model",
        "causal": "acceptability.models.hf.causal:open_model",
        "masked": "acceptability.models.hf.masked:open_model",
        "seq2seq": "acceptability.models.hf.seq2seq:open_model",
        "classifier": "acceptability.models.hf.classifier:open_model",
        "prompted": "acceptability.models.prompted:open_model",
        "remote": "acceptability.models.remote:open_model",
    },
    "engine": {
        "local": "acceptability.engine:Local",
        "ray": "acceptability.engine.ray:Ray",
    },
    "measure": {
        "PairAccuracy": "acceptability.measures.pairs:PairAccuracy",
        "AbsolutePair": "acceptability.measures.pairs:AbsolutePair",
        "GradientPair": "acceptability.measures.pairs:GradientPair",
        "PairCorrelation": "acceptability.measures.pairs:PairCorrelation",
        "UnpairedAUC": "acceptability.measures.pairs:UnpairedAUC",
        "SetAccuracy": "acceptability.measures.pairs:SetAccuracy",
        "ADC": "acceptability.measures.delta:ADC",
        "ADCArea": "acceptability.measures.delta:ADCArea",
        "DeltaCorrelation": "acceptability.measures.delta:DeltaCorrelation",
        "PBC": "acceptability.measures.correlation:PBC",
        "Pearson": "acceptability.measures.correlation:Pearson",
        "Spearman": "acceptability.measures.correlation:Spearman",
        "Kendall": "acceptability.measures.correlation:Kendall",
        "MCC": "acceptability.measures.classification:MCC",
        "Directionality": "acceptability.measures.target_contrast:Directionality",
        "Repulsion": "acceptability.measures.target_contrast:Repulsion",
        "ClozePair": "acceptability.measures.target_contrast:ClozePair",
        "Goodness": "acceptability.measures.target_contrast:Goodness",
        "Intensity": "acceptability.measures.target_contrast:Intensity",
        "Predictions": "acceptability.measures.predictions:Predictions",
        "Accuracy": "acceptability.measures.classification:Accuracy",
        "AUC": "acceptability.measures.classification:AUC",
    },
    "study": {
        "adc": "acceptability.papers.adc:PAPER",
        "niu-penn": "acceptability.papers.niu_penn:PAPER",
        "cola": "acceptability.papers.cola:PAPER",
        "npi": "acceptability.papers.npi:PAPER",
        "humans": "acceptability.papers.humans:PAPER",
        "park": "acceptability.papers.park:PAPER",
        "syntaxgym": "acceptability.papers.syntaxgym_accuracy:PAPER",
    },
    "recipe": {
        "ngram": "acceptability.train.ngram_recipes:NGramRecipe",
        "aggregate-markov": "acceptability.train.aggregate_markov_em:AggregateMarkovRecipe",
        "rnn": "acceptability.train.recurrent_recipes:RNNRecipe",
        "lstm": "acceptability.train.recurrent_recipes:LSTMRecipe",
        "qrnn": "acceptability.train.recurrent_recipes:QRNNRecipe",
        "varikn": "acceptability.train.ngram_recipes:VariKNRecipe",
        "gpt": "acceptability.train.transformer_recipes:GPTRecipe",
        "bert": "acceptability.train.transformer_recipes:BERTRecipe",
        "cbow": "acceptability.train.classifiers.word_classifiers:CbowRecipe",
        "pooling": "acceptability.train.classifiers.word_classifiers:PoolingRecipe",
        "real-fake": "acceptability.train.classifiers.real_fake:RealFakeRecipe",
        "transformer": "acceptability.train.classifiers.finetuning:FineTuningRecipe",
    },
    "subject": {
        "real-fake": "acceptability.train.classifiers.real_fake:generate_real_fake_sentences",
        "npi": "acceptability.generate:npi",
        "agreement": "acceptability.generate:agreement",
        "reflexives": "acceptability.generate:reflexives",
        "filler-gap": "acceptability.generate:filler_gap",
        "targeted/svo": "acceptability.generate:svo",
        "targeted/wh": "acceptability.generate:wh",
        "targeted/causative": "acceptability.generate:causative",
        "targeted/sv-agreement": "acceptability.generate:sv_agreement",
        "targeted/reflexive": "acceptability.generate:reflexive",
    },
    # What results give of themselves in Python, which the room of reports makes.
    "output": {
        "figure": "acceptability.report.output:make_figure",
        "report": "acceptability.report.output:write_results_report",
        "latex": "acceptability.report.output:format_results_latex",
    },
    "reduction": {
        name: f"acceptability.reductions:{target}"
        for name, target in {
            "lp": "LP",
            "mean_lp": "MeanLP",
            "pen_lp": "PenLP",
            "slln_lp": "SllnLP",
            "slor": "SLOR",
            "norm_lp_sub": "NormLPSub",
            "norm_lp_div": "NormLPDiv",
            "word_lp_min": "WordLPMin",
            "word_lp_mean": "WordLPMean",
            "word_lp_mean_q1": "WordLPMeanQ1",
            "word_lp_mean_q2": "WordLPMeanQ2",
            "exp": "Exp",
            "morcela": "Morcela",
            "log_odds": "LogOdds",
            "p_acceptable": "PAcceptable",
            "signed_confidence": "SignedConfidence",
        }.items()
    },
}

# The last part of the error about an unknown name. Readers and models point to a command, because their names are
# chosen by the catalog or include a location, so that a list of names would not help.
_HINTS = {
    "reader": "`acceptability suites` lists the suites.",
    "model": "`acceptability models` lists the kinds of models and the named models.",
    "engine": "The engines are: {names}.",
    "measure": "The measures are: {names}.",
    "study": "The studies are: {names}; a study of your own: `acceptability study run FILE.toml`.",
    "recipe": "The recipes are: {names}.",
    "subject": "The phenomena to generate are: {names}; or the paradigms of a file of your own, FILE.toml.",
    "reduction": "The reductions are: {names}.",
    "output": "The outputs are: {names}.",
}

# Names that a registered object had in the version before: accepted for one release.
_RENAMED = {"model": RENAMED_MODEL_KINDS}

_log = logging.getLogger(__name__)


@cache
def names(kind: str) -> dict[str, str]:
    """Return the registered names of a kind ("measure", ...), each with its "module:object"."""
    # Imported here: looking at all installed packages takes longer than a short command otherwise does.
    from importlib.metadata import entry_points

    plugins = {point.name: point.value for point in entry_points(group=f"acceptability.{kind}s")}
    # Built-in names win: installing a plug-in must not silently change what a published signature computes.
    return plugins | _BUILTIN[kind]


def is_plugin(kind: str, name: str) -> bool:
    """Return whether a name is registered by another package.

    >>> is_plugin("model", "causal")
    False
    """
    return name in names(kind) and name not in _BUILTIN[kind]


def current_name(kind: str, name: str) -> str:
    """Return what a registered object is called now, given its present or its former name.

    >>> current_name("model", "asking"), current_name("model", "causal")
    ('prompted', 'causal')
    """
    return _RENAMED.get(kind, {}).get(name, name)


@cache
def report_former_name(kind: str, name: str, present_name: str) -> None:
    """Log what a name is called now.

    Args:
        kind: What has the name, such as ``model`` or ``lstm option``.
    """
    # Cached, so that a program that opens a model a thousand times logs it once.
    _log.warning(
        "the %s %r is now called %r; the old name will be refused from the next release",
        kind,
        name,
        present_name,
    )


def find(kind: str, name: str) -> Any:
    """Return the object registered under a name; the error about an unknown name suggests the closest one."""
    # A built-in name is never that of a plug-in, for which all installed packages would be looked at.
    known = _BUILTIN[kind] if name in _BUILTIN[kind] else names(kind)
    # A plug-in may register the old name for something of its own, which then wins.
    if name not in known and current_name(kind, name) in known:
        report_former_name(kind, name, current_name(kind, name))
        name = current_name(kind, name)
    if name not in known:
        raise UnknownName(kind, name, known, hint=_HINTS[kind].format(names=", ".join(sorted(known))))
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)


def make(kind: str, text: str) -> Any:
    """Return the object that a spec describes, such as ``ADC(delta=0.5)``.

    >>> make("measure", "PairAccuracy")
    PairAccuracy(ties=0.0)
    """
    return _build_parsed(kind, parse_spec(text))


def _build_parsed(kind: str, spec: ParsedSpec) -> Any:
    factory: Callable[..., Any] = find(kind, spec.name)
    # A nested spec is of the same kind as the outer one: the "slor" in exp(slor) is again a reduction.
    args = [_build_parsed(kind, value) if isinstance(value, ParsedSpec) else value for value in spec.args]
    options = {
        name: _build_parsed(kind, value) if isinstance(value, ParsedSpec) else value
        for name, value in spec.options.items()
    }
    return call_factory(factory, spec.name, args, options)


def call_factory(factory: Callable[..., Any], name: str, args: Sequence[object], options: Mapping[str, object]) -> Any:
    """Call a factory; the error about an option that it does not accept lists those that it does.

    Args:
        name: The name of the object in error messages.
    """
    accepted = signature(factory)
    # Only the binding is guarded: a TypeError from inside the factory is a bug and no wrong option.
    try:
        accepted.bind(*args, **options)
    except TypeError as error:
        raise SpecError(f"{name}: {error}. Its options are {_format_options(accepted)}.") from error
    return factory(*args, **options)


def _format_options(accepted: Any) -> str:
    options = [
        name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"
        for name, parameter in accepted.parameters.items()
    ]
    return f"({', '.join(options)})"
