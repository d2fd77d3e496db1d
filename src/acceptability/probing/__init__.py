"""Feature probing: which factors of a suite can be read off what an encoder makes of its sentences."""

from acceptability.probing.design import factors_of
from acceptability.probing.probes import MAJORITY, ProbeScore, probe
from acceptability.probing.vectors import BAG_OF_WORDS

__all__ = ["BAG_OF_WORDS", "MAJORITY", "ProbeScore", "factors_of", "probe"]
