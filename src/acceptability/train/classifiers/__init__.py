"""Classifiers of acceptability, taught from labelled sentences: ``teach(recipe, data, out)``, one recipe per file."""

from acceptability.train.classifiers.course import Course, Fitted, teach
from acceptability.train.classifiers.examples import Examples, held_out, read_examples

__all__ = ["Course", "Examples", "Fitted", "held_out", "read_examples", "teach"]
