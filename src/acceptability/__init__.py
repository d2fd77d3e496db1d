"""How much a language model knows about which sentences of a language are acceptable.

>>> from acceptability import evaluate, load_suite
>>> results = evaluate(load_suite("starter"), ["uniform"], measures=["PairAccuracy(ties=0.5)"])
>>> results[0].n >= 300
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
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
    "Comparison": "comparing",
    "Judgement": "scoring",
    "AcceptabilityError": "errors",
    "load_suite": "suites",
    "load_model": "models",
    "score": "scoring",
    "region_scores": "scoring",
    "evaluate": "measuring",
    "measure": "measuring",
    "compare": "comparing",
    "judge": "scoring",
    "PairAccuracy": "measures.pairs",
    "AbsolutePair": "measures.decisions",
    "GradientPair": "measures.decisions",
    "PairCorrelation": "measures.probability",
    "UnpairedAUC": "measures.probability",
    "SetAccuracy": "measures.sets",
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
}

if TYPE_CHECKING:
    from acceptability.comparing import Comparison, compare
    from acceptability.errors import AcceptabilityError
    from acceptability.measures.classification import AUC, MCC, Accuracy
    from acceptability.measures.correlation import PBC, Kendall, Pearson, Spearman
    from acceptability.measures.decisions import AbsolutePair, GradientPair
    from acceptability.measures.delta import ADC, ADCArea, DeltaCorrelation, adc_curve
    from acceptability.measures.pairs import PairAccuracy
    from acceptability.measures.predictions import Predictions
    from acceptability.measures.probability import PairCorrelation, UnpairedAUC
    from acceptability.measures.sets import SetAccuracy
    from acceptability.measuring import evaluate, measure
    from acceptability.models import load_model
    from acceptability.scoring import Judgement, judge, region_scores, score
    from acceptability.stats.bootstrap import Bootstrap
    from acceptability.suites import load_suite
    from acceptability.types import Contrast, LabelScores, Query, Result, Scores, Sentence, Suite, TokenScores, Units

__all__ = [
    "ADC",
    "AUC",
    "MCC",
    "PBC",
    "ADCArea",
    "AbsolutePair",
    "AcceptabilityError",
    "Accuracy",
    "Bootstrap",
    "Comparison",
    "Contrast",
    "DeltaCorrelation",
    "GradientPair",
    "Judgement",
    "Kendall",
    "LabelScores",
    "PairAccuracy",
    "PairCorrelation",
    "Pearson",
    "Predictions",
    "Query",
    "Result",
    "Scores",
    "Sentence",
    "SetAccuracy",
    "Spearman",
    "Suite",
    "TokenScores",
    "Units",
    "UnpairedAUC",
    "adc_curve",
    "compare",
    "evaluate",
    "judge",
    "load_model",
    "load_suite",
    "measure",
    "region_scores",
    "score",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that importing the package stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'acceptability' has no attribute {name!r}")
    found = getattr(import_module(f"acceptability.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
