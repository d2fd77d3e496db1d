"""Measure how well language models judge which sentences of a language are acceptable.

>>> from acceptability import evaluate
>>> evaluate("starter", ["uniform", "trigram"], measure="PairAccuracy(ties=0.5)").best().model
'trigram'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# The public names and the modules that define them. They are imported on first use: `import acceptability` has to stay
# fast for the command line and for shell completion, and some of these modules import SciPy or open the database.
_MODULE_OF = {
    "Sentence": "types",
    "Contrast": "types",
    "Suite": "types",
    "Query": "types",
    "TokenScores": "types",
    "LabelScores": "types",
    "Scores": "types",
    "Units": "types",
    "Result": "types",
    "Bootstrap": "stats.bootstrap",
    "Comparison": "api.comparison",
    "Judgement": "api.scoring",
    "AcceptabilityError": "errors",
    "load_suite": "suites",
    "load_model": "models",
    "score": "api.scoring",
    "region_scores": "api.scoring",
    "evaluate": "api.evaluation",
    "measure": "api.evaluation",
    "compare": "api.comparison",
    "equivalence": "api.significance.equivalence",
    "power": "api.significance.planning",
    "reproduce": "api.reproduction",
    "Reproduction": "api.reproduction",
    "judge": "api.scoring",
    "regress": "stats.mixed",
    "PairAccuracy": "measures.pairs",
    "AbsolutePair": "measures.pairs",
    "GradientPair": "measures.pairs",
    "PairCorrelation": "measures.pairs",
    "UnpairedAUC": "measures.pairs",
    "SetAccuracy": "measures.pairs",
    "ADC": "measures.delta",
    "ADCArea": "measures.delta",
    "DeltaCorrelation": "measures.delta",
    "adc_curve": "measures.delta",
    "PBC": "measures.correlation",
    "Pearson": "measures.correlation",
    "Spearman": "measures.correlation",
    "Kendall": "measures.correlation",
    "MCC": "measures.classification",
    "Predictions": "measures.predictions",
    "Accuracy": "measures.classification",
    "AUC": "measures.classification",
    "Results": "api.interface.results",
    "Comparisons": "api.comparison",
    "Correlations": "api.comparison",
    "Judgements": "api.scoring",
    "Table": "display",
    "tokens": "api.interface.token_tables",
    "annotate": "api.psycholinguistics.annotation",
    "complete": "api.psycholinguistics.cloze",
    "AnnotatedWords": "api.psycholinguistics.annotation",
    "Completions": "api.psycholinguistics.cloze",
    "TokenPredictions": "types",
    "words": "api.interface.token_tables",
    "list_suites": "api.interface.listings",
    "list_models": "api.interface.listings",
    "list_measures": "api.interface.listings",
    "list_reductions": "api.interface.listings",
    "from_function": "models.function_model",
    "from_transformers": "models.hf.in_memory",
    "correlate": "api.comparison",
    "link": "api.linking",
    "ratings": "api.rating_tables",
    "study": "papers",
    "run_study": "papers",
}

# Reductions have the names of their specs, so that what a table shows can be typed: slor(unigrams='wordfreq:en').
_REDUCTION_CLASSES = {
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
}

# Type checkers and editors cannot see through __getattr__, so the same names are imported for them alone.
if TYPE_CHECKING:
    from acceptability.api.comparison import Comparison, Comparisons, Correlations, compare, correlate
    from acceptability.api.evaluation import evaluate, measure
    from acceptability.api.interface.listings import list_measures, list_models, list_reductions, list_suites
    from acceptability.api.interface.results import Results
    from acceptability.api.interface.token_tables import tokens, words
    from acceptability.api.linking import link
    from acceptability.api.psycholinguistics.annotation import AnnotatedWords, annotate
    from acceptability.api.psycholinguistics.cloze import Completions, complete
    from acceptability.api.rating_tables import ratings
    from acceptability.api.reproduction import Reproduction, reproduce
    from acceptability.api.scoring import Judgement, Judgements, judge, region_scores, score
    from acceptability.api.significance.equivalence import equivalence
    from acceptability.api.significance.planning import power
    from acceptability.display import Table
    from acceptability.errors import AcceptabilityError
    from acceptability.measures.classification import AUC, MCC, Accuracy
    from acceptability.measures.correlation import PBC, Kendall, Pearson, Spearman
    from acceptability.measures.delta import ADC, ADCArea, DeltaCorrelation, adc_curve
    from acceptability.measures.pairs import (
        AbsolutePair,
        GradientPair,
        PairAccuracy,
        PairCorrelation,
        SetAccuracy,
        UnpairedAUC,
    )
    from acceptability.measures.predictions import Predictions
    from acceptability.models import load_model
    from acceptability.models.function_model import from_function
    from acceptability.models.hf.in_memory import from_transformers
    from acceptability.papers import run_study, study
    from acceptability.reductions import LP as lp
    from acceptability.reductions import SLOR as slor
    from acceptability.reductions import Exp as exp
    from acceptability.reductions import LogOdds as log_odds
    from acceptability.reductions import MeanLP as mean_lp
    from acceptability.reductions import Morcela as morcela
    from acceptability.reductions import NormLPDiv as norm_lp_div
    from acceptability.reductions import NormLPSub as norm_lp_sub
    from acceptability.reductions import PAcceptable as p_acceptable
    from acceptability.reductions import PenLP as pen_lp
    from acceptability.reductions import SignedConfidence as signed_confidence
    from acceptability.reductions import SllnLP as slln_lp
    from acceptability.reductions import WordLPMean as word_lp_mean
    from acceptability.reductions import WordLPMeanQ1 as word_lp_mean_q1
    from acceptability.reductions import WordLPMeanQ2 as word_lp_mean_q2
    from acceptability.reductions import WordLPMin as word_lp_min
    from acceptability.stats.bootstrap import Bootstrap
    from acceptability.stats.mixed import regress
    from acceptability.suites import load_suite
    from acceptability.train.recipe import train_from_options as train
    from acceptability.types import (
        Contrast,
        LabelScores,
        Query,
        Result,
        Scores,
        Sentence,
        Suite,
        TokenPredictions,
        TokenScores,
        Units,
    )

__all__ = [
    "ADC",
    "AUC",
    "MCC",
    "PBC",
    "ADCArea",
    "AbsolutePair",
    "AcceptabilityError",
    "Accuracy",
    "AnnotatedWords",
    "Bootstrap",
    "Comparison",
    "Comparisons",
    "Completions",
    "Contrast",
    "Correlations",
    "DeltaCorrelation",
    "GradientPair",
    "Judgement",
    "Judgements",
    "Kendall",
    "LabelScores",
    "PairAccuracy",
    "PairCorrelation",
    "Pearson",
    "Predictions",
    "Query",
    "Reproduction",
    "Result",
    "Results",
    "Scores",
    "Sentence",
    "SetAccuracy",
    "Spearman",
    "Suite",
    "Table",
    "TokenPredictions",
    "TokenScores",
    "Units",
    "UnpairedAUC",
    "adc_curve",
    "annotate",
    "compare",
    "complete",
    "correlate",
    "equivalence",
    "evaluate",
    "exp",
    "from_function",
    "from_transformers",
    "judge",
    "link",
    "list_measures",
    "list_models",
    "list_reductions",
    "list_suites",
    "load_model",
    "load_suite",
    "log_odds",
    "lp",
    "mean_lp",
    "measure",
    "morcela",
    "norm_lp_div",
    "norm_lp_sub",
    "p_acceptable",
    "pen_lp",
    "power",
    "ratings",
    "region_scores",
    "regress",
    "reproduce",
    "run_study",
    "score",
    "signed_confidence",
    "slln_lp",
    "slor",
    "study",
    "tokens",
    "train",
    "word_lp_mean",
    "word_lp_mean_q1",
    "word_lp_mean_q2",
    "word_lp_min",
    "words",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    public_object: object
    if name == "train":
        # A package that is callable, for it has the name of the command.
        public_object = import_module("acceptability.train")
    elif name in _REDUCTION_CLASSES:
        public_object = getattr(import_module("acceptability.reductions"), _REDUCTION_CLASSES[name])
    elif name in _MODULE_OF:
        public_object = getattr(import_module(f"acceptability.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'acceptability' has no attribute {name!r}")
    # Once it is a module attribute, Python no longer calls __getattr__ for this name.
    globals()[name] = public_object
    return public_object


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
