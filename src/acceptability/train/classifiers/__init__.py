"""Classifiers of acceptability, trained on labelled sentences: ``train_classifier(recipe, data, out)``.

``finetuning`` has the recipe for transformers, ``word_classifiers`` those for CBOW and pooling networks over words, and
``real_fake`` trains an encoder on corrupted text. ``random_restarts`` runs a recipe with several seeds.
"""

from acceptability.train.classifiers.recipe import (
    ClassifierRecipe,
    FitResult,
    LabelledSentences,
    read_labelled_sentences,
    split_held_out,
    train_classifier,
)

__all__ = [
    "ClassifierRecipe",
    "FitResult",
    "LabelledSentences",
    "read_labelled_sentences",
    "split_held_out",
    "train_classifier",
]
