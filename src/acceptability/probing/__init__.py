"""Feature probing: which factors of a suite linear classifiers can read off an encoder's sentence vectors."""

from acceptability.probing.design import find_factors
from acceptability.probing.probes import MAJORITY, ProbeScore, probe, probe_encoders
from acceptability.probing.representations import BAG_OF_WORDS

__all__ = ["BAG_OF_WORDS", "MAJORITY", "ProbeScore", "find_factors", "probe", "probe_encoders"]
