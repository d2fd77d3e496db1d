"""Language models trained from text: ``train(recipe, corpus, out)``, one recipe per file."""

from acceptability.train.recipe import Recipe, TrainingJob, TrainingProgress, train, train_from_options

__all__ = ["Recipe", "TrainingJob", "TrainingProgress", "train", "train_from_options"]
