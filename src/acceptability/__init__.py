"""Measure how well language models judge which sentences of a language are acceptable.

>>> from acceptability import evaluate, load_suite
>>> results = evaluate(load_suite("starter"), ["uniform"], measures=["PairAccuracy(ties=0.5)"])
>>> results[0].n >= 300
True
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
}

# Type checkers and editors cannot see through __getattr__, so the same names are imported for them alone.
if TYPE_CHECKING:
    from acceptability.api.comparison import Comparison, compare
    from acceptability.api.evaluation import evaluate, measure
    from acceptability.api.reproduction import Reproduction, reproduce
    from acceptability.api.scoring import Judgement, judge, region_scores, score
    from acceptability.api.significance.equivalence import equivalence
    from acceptability.api.significance.planning import power
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
    from acceptability.stats.bootstrap import Bootstrap
    from acceptability.stats.mixed import regress
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
    "Reproduction",
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
    "equivalence",
    "evaluate",
    "judge",
    "load_model",
    "load_suite",
    "measure",
    "power",
    "region_scores",
    "regress",
    "reproduce",
    "score",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'acceptability' has no attribute {name!r}")
    public_object = getattr(import_module(f"acceptability.{_MODULE_OF[name]}"), name)
    # Once it is a module attribute, Python no longer calls __getattr__ for this name.
    globals()[name] = public_object
    return public_object


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
