"""Names and what they stand for: ``"module:object"``, loaded on first use.

Other packages add theirs through the entry points ``acceptability.readers``,
``acceptability.models``, ``acceptability.engines``, ``acceptability.measures``, ``acceptability.recipes`` and
``acceptability.reductions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any

from acceptability.errors import SpellingError, UnknownName
from acceptability.spelling import Spelled, read

_OURS: dict[str, dict[str, str]] = {
    "reader": {
        name: f"acceptability.suites.{name}:read"
        for name in (
            "starter",
            "li_adger",
            "cola",
            "blimp",
            "npi",
            "hu_reflexive",
            "syntaxgym",
            "agreement",
            "lau",
            "sprouse2013_li",
            "niu_penn2020",
            "other_languages",
        )
    },
    "model": {
        "uniform": "acceptability.models.uniform:open_model",
        "ngram": "acceptability.models.ngram:open_model",
        "aggregate-markov": "acceptability.models.aggregate_markov:open_model",
        "recurrent": "acceptability.models.recurrent:open_model",
        "causal": "acceptability.models.causal:open_model",
        "masked": "acceptability.models.masked:open_model",
        "seq2seq": "acceptability.models.seq2seq:open_model",
        "classifier": "acceptability.models.classifier:open_model",
        "asking": "acceptability.models.asking:open_model",
        "remote": "acceptability.models.remote:open_model",
    },
    "engine": {
        "local": "acceptability.engine:Local",
        "ray": "acceptability.engine.cluster:Ray",
    },
    "measure": {
        "PairAccuracy": "acceptability.measures.pairs:PairAccuracy",
        "AbsolutePair": "acceptability.measures.decisions:AbsolutePair",
        "GradientPair": "acceptability.measures.decisions:GradientPair",
        "PairCorrelation": "acceptability.measures.probability:PairCorrelation",
        "UnpairedAUC": "acceptability.measures.probability:UnpairedAUC",
        "SetAccuracy": "acceptability.measures.sets:SetAccuracy",
        "ADC": "acceptability.measures.delta:ADC",
        "ADCArea": "acceptability.measures.delta:ADCArea",
        "DeltaCorrelation": "acceptability.measures.delta:DeltaCorrelation",
        "PBC": "acceptability.measures.correlation:PBC",
        "Pearson": "acceptability.measures.correlation:Pearson",
        "Spearman": "acceptability.measures.correlation:Spearman",
        "Kendall": "acceptability.measures.correlation:Kendall",
        "MCC": "acceptability.measures.classification:MCC",
        "Directionality": "acceptability.measures.contrast:Directionality",
        "Repulsion": "acceptability.measures.contrast:Repulsion",
        "ClozePair": "acceptability.measures.contrast:ClozePair",
        "Goodness": "acceptability.measures.contrast:Goodness",
        "Intensity": "acceptability.measures.contrast:Intensity",
        "Predictions": "acceptability.measures.predictions:Predictions",
        "Accuracy": "acceptability.measures.classification:Accuracy",
        "AUC": "acceptability.measures.classification:AUC",
    },
    "study": {
        "adc": "acceptability.studies.adc:cells",
        "niu-penn": "acceptability.studies.niu_penn:cells",
        "cola": "acceptability.studies.cola:cells",
        "npi": "acceptability.studies.npi:cells",
        "humans": "acceptability.studies.humans:cells",
        "park": "acceptability.studies.park:cells",
        "syntaxgym": "acceptability.studies.syntaxgym:cells",
    },
    "recipe": {
        "ngram": "acceptability.train.ngram:NGram",
        "aggregate-markov": "acceptability.train.aggregate_markov:AggregateMarkov",
        "rnn": "acceptability.train.recurrent:RNN",
        "lstm": "acceptability.train.recurrent:LSTM",
        "qrnn": "acceptability.train.recurrent:QRNN",
        "varikn": "acceptability.train.varikn:VariKN",
        "gpt": "acceptability.train.transformers:GPT",
        "bert": "acceptability.train.transformers:BERT",
        "cbow": "acceptability.train.classifiers.words:Cbow",
        "pooling": "acceptability.train.classifiers.words:Pooling",
        "real-fake": "acceptability.train.classifiers.encoders:RealFake",
        "transformer": "acceptability.train.classifiers.finetuned:Finetuned",
    },
    "subject": {
        "real-fake": "acceptability.train.classifiers.real_fake:made_sentences",
        "npi": "acceptability.generate.phenomena:npi",
        "agreement": "acceptability.generate.phenomena:agreement",
        "reflexives": "acceptability.generate.phenomena:reflexives",
        "filler-gap": "acceptability.generate.phenomena:filler_gap",
        "targeted/svo": "acceptability.generate.phenomena:svo",
        "targeted/wh": "acceptability.generate.phenomena:wh",
        "targeted/causative": "acceptability.generate.phenomena:causative",
        "targeted/sv-agreement": "acceptability.generate.phenomena:sv_agreement",
        "targeted/reflexive": "acceptability.generate.phenomena:reflexive",
    },
    "reduction": {
        name: f"acceptability.reductions:{target}"
        for name, target in {
            "lp": "LP",
            "mean_lp": "MeanLP",
            "pen_lp": "PenLP",
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

_HINTS = {
    "reader": "`acceptability suites` lists the suites.",
    "model": "`acceptability models` lists the kinds and the named ones.",
    "engine": "The engines are: {names}.",
    "measure": "The measures are: {names}.",
    "study": "The studies are: {names}; a study of your own is a TOML file.",
    "recipe": "The recipes are: {names}.",
    "subject": "What can be made: {names}; or the paradigms of a file of your own, FILE.toml.",
    "reduction": "The reductions are: {names}.",
}


@cache
def names(kind: str) -> dict[str, str]:
    """Return every registered name of a kind ("measure", ...) and where its object lives."""
    theirs = {point.name: point.value for point in entry_points(group=f"acceptability.{kind}s")}
    return theirs | _OURS[kind]


def find(kind: str, name: str) -> Any:
    """Return the object registered under a name; a wrong name gets a suggestion."""
    known = names(kind)
    if name not in known:
        raise UnknownName(kind, name, known, hint=_HINTS[kind].format(names=", ".join(sorted(known))))
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)


def make(kind: str, text: str) -> Any:
    """Return the value that a spelling describes, such as ``ADC(delta=0.5)``.

    >>> make("measure", "PairAccuracy")
    PairAccuracy(ties=0.0)
    """
    return _made(kind, read(text))


def _made(kind: str, spelled: Spelled) -> Any:
    factory: Callable[..., Any] = find(kind, spelled.name)
    args = [_made(kind, each) if isinstance(each, Spelled) else each for each in spelled.args]
    options = {name: _made(kind, each) if isinstance(each, Spelled) else each for name, each in spelled.options.items()}
    return build(factory, spelled.name, args, options)


def build(factory: Callable[..., Any], name: str, args: Sequence[object], options: Mapping[str, object]) -> Any:
    """Return what a factory makes of options; options that it does not take are named."""
    accepted = signature(factory)
    try:
        accepted.bind(*args, **options)
    except TypeError as error:
        raise SpellingError(f"{name}: {error}. Its options are {_shown(accepted)}.") from error
    return factory(*args, **options)


def _shown(accepted: Any) -> str:
    shown = [
        name if each.default is each.empty else f"{name}={each.default!r}" for name, each in accepted.parameters.items()
    ]
    return f"({', '.join(shown)})"
