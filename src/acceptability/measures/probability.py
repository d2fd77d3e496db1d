"""What probability can tell about grammaticality (Hu et al. 2026): three numbers for any model and suite of pairs.

The two sentences of a pair share what they say, so their probabilities go together (PairCorrelation);
what is left between them may follow people's judgements (DeltaCorrelation, in delta.py); and strings
that share nothing separate badly, however well the pairs do (UnpairedAUC).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from acceptability.measures.correlation import KINDS, correlation
from acceptability.measures.decisions import paired
from acceptability.measures.options import check_choice
from acceptability.measures.ordering import auc
from acceptability.types import Scores, Suite, Units

WHAT_PROBABILITY_TELLS = ("PairCorrelation()", "DeltaCorrelation()", "UnpairedAUC()")
"""The three, as spellings: the second needs ratings of both sentences."""


@dataclass(frozen=True)
class PairCorrelation:
    """How the scores of the two sentences of a contrast go together, over all contrasts.

    Args:
        kind: "pearson", "spearman" or "kendall" (tau-b).
    """

    kind: str = "pearson"

    needs = "contrasts"

    def __post_init__(self) -> None:
        check_choice("PairCorrelation: kind", self.kind, KINDS)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast, with both scores."""
        return paired(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return the correlation of the better sentences' scores with the worse ones'."""
        return correlation(self.kind, units["better"], units["worse"])


@dataclass(frozen=True)
class UnpairedAUC:
    """How often any better sentence scores above any worse one, whether or not the two make a contrast.

    A tie counts one half. A sentence that stands in several contrasts counts once in all, an equal part in each.
    """

    needs = "contrasts"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast, with both scores and how much of each sentence belongs to this contrast."""
        rows = paired(suite, scores, self)
        better, worse = (Counter(getattr(each, side) for each in suite.contrasts) for side in ("better", "worse"))
        shares = {
            "better_share": np.array([1 / better[each.better] for each in suite.contrasts]),
            "worse_share": np.array([1 / worse[each.worse] for each in suite.contrasts]),
        }
        return Units(rows.ids, {**rows.columns, **shares}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the area under the ROC curve of better against worse sentences."""
        return auc(units["better"], units["worse"], units["better_share"], units["worse_share"])
