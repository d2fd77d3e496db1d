"""Language models and classifiers trained from data: ``train(recipe, corpus, out)``, one recipe per file.

The package is callable, as the command is: ``acceptability.train("ngram", out="mine", corpus="text.txt")``.
"""

import sys
from functools import wraps
from types import ModuleType
from typing import Any

from acceptability.train.recipe import Recipe, TrainedModel, TrainingJob, TrainingProgress, train, train_from_options

__all__ = ["Recipe", "TrainedModel", "TrainingJob", "TrainingProgress", "train", "train_from_options"]


class _CallableModule(ModuleType):
    """This package as a function, since ``acceptability.train`` is the name of both."""

    @wraps(train_from_options)
    def __call__(self, *args: Any, **options: Any) -> TrainedModel:
        return train_from_options(*args, **options)


# Python looks for __call__ in the class of a module, which may be changed to one derived from it.
sys.modules[__name__].__class__ = _CallableModule
