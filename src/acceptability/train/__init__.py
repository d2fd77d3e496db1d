"""Language models trained from text: ``train(recipe, corpus, out)``, one recipe per file."""

from acceptability.train.recipe import Job, Recipe, train
from acceptability.train.tick import Tick

__all__ = ["Job", "Recipe", "Tick", "train"]
