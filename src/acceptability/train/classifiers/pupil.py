"""A network that is to learn, with what it reads: begun anew, or with the encoder of a classifier that is finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from acceptability.errors import TrainError, shorten
from acceptability.models import recurrent_shape, vocabulary
from acceptability.models.huggingface import _placed
from acceptability.models.recurrent import Recurrent
from acceptability.models.sentence_classifier import SentenceClassifier, open_folder
from acceptability.models.sentence_networks import SentenceNetwork, WordTable, network_of, saved
from acceptability.models.sentence_shape import FILE, LM, Shape, is_ours
from acceptability.models.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from acceptability.train.checkpoint import atomic
from acceptability.train.classifiers.examples import Examples
from acceptability.train.classifiers.inputs import Inputs, counts_of, facts_of
from acceptability.train.classifiers.loop import Learnt, Lesson, Pace, learn, one_thread
from acceptability.train.classifiers.reading import Source, Texts, Vectors, source_of, texts_of
from acceptability.train.tick import Tell


@dataclass(frozen=True, eq=False)
class Pupil:
    """A network and what it reads.

    Args:
        frozen: Whether only the layers above the sentence vector learn.
    """

    network: SentenceNetwork
    inputs: Inputs
    frozen: bool = False

    def facts(self) -> dict[str, object]:
        """Return what a model's card tells of it."""
        learner = self.network.head if self.frozen else self.network
        sizes = [each.numel() for each in learner.parameters() if each.requires_grad]
        return {**self.inputs.facts, "numbers of a sentence": self.network.shape.sentence, "parameters": sum(sizes)}


def begun(shape: Shape, inputs: Inputs, share: float, seed: int) -> Pupil:
    """Return a network that has learnt nothing yet, where a GPU is, there; vectors that are given do not change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = network_of(shape, share)
    if inputs.table is not None and isinstance(network.inputs, WordTable):
        network.inputs.table = torch.nn.Parameter(torch.from_numpy(inputs.table.copy()), requires_grad=False)
    return Pupil(network.to(_placed("auto")), inputs)


def taken(encoder: str, texts: Iterable[str], top: int, share: float, seed: int) -> Pupil:
    """Return the frozen encoder of a finished pooling classifier, with a hidden layer of tanh on top to be learnt.

    Args:
        encoder: The folder of that classifier.
        texts: Sentences of which it is told how many words the encoder knows.
    """
    model = _pooling(Path(encoder).expanduser())
    shape = replace(model.shape, top=top, activation="tanh")
    lm = Recurrent(model.folder / LM, eos=False, unknown="<unk>") if shape.reads_states else None
    facts = {**facts_of(model.vocabulary, shape.inputs, counts_of(model.vocabulary, texts)), "encoder": model.signature}
    fresh = begun(shape, Inputs(model.vocabulary, shape.width, lm=lm, facts=facts), share, seed)
    weights = {name: each for name, each in model.net.state_dict().items() if not name.startswith("head.")}
    if isinstance(fresh.network.inputs, WordTable):
        # As finely as it was kept.
        fresh.network.inputs.table = torch.nn.Parameter(weights["inputs.table"].clone())
    fresh.network.load_state_dict(weights, strict=False)
    return replace(fresh, frozen=True)


def _pooling(folder: Path) -> SentenceClassifier:
    if not is_ours(folder):
        raise TrainError(f"encoder={str(folder)!r} is no classifier that was taught here; `train real-fake` makes one")
    model = open_folder(folder)
    if model.shape.network != "pooling":
        kind = model.shape.network
        raise TrainError(f"encoder={str(folder)!r} is of the kind {kind!r}; expected a pooling classifier")
    return model


def taught(pupil: Pupil, pace: Pace, examples: tuple[Examples, Examples], tell: Tell) -> Learnt:
    """Teach a network some sentences until others, held out, are judged no better."""
    with one_thread():
        lesson, held = (_lesson(pupil, each) for each in examples)
    return learn(pupil.network.head if pupil.frozen else pupil.network, lesson, held, pace, tell)


def write_folder(pupil: Pupil, out: Path) -> None:
    """Write a classifier that ``classifier:DIR`` opens; a language model is copied, so that the folder can be moved."""
    files = {out / FILE: saved(pupil.network)}
    if (lm := pupil.inputs.lm) is None:
        files[out / vocabulary.FILE] = pupil.inputs.vocabulary.to_json()
    else:
        # The card goes with it: it says what may be done with the weights.
        names = (recurrent_shape.FILE, vocabulary.FILE, *(["README.md"] if (lm.folder / "README.md").is_file() else []))
        files |= {out / LM / name: (lm.folder / name).read_bytes() for name in names}
    for path, content in sorted(files.items()):
        with atomic(path) as opened:
            opened.write(content)


def numbered(pupil: Pupil, texts: Iterable[str]) -> Texts:
    """Return sentences as the numbers of their words; one without words, or with too many, is an error."""
    return texts_of(_row(text, pupil.inputs.vocabulary, pupil.network.shape.longest) for text in texts)


def source(pupil: Pupil, texts: Texts) -> Source:
    """Return sentences as the network reads them."""
    lm = pupil.inputs.lm.net if pupil.inputs.lm else None
    return source_of(texts, lm, next(pupil.network.parameters()).device)


def _row(text: str, known: Vocabulary, longest: int) -> list[int]:
    """Return the numbers of a sentence's words; where it has ``<unk>`` already, a word that is not known."""
    first, *others = (known.numbers(known.cut(part)[0]) for part in text.split(SPECIAL[UNKNOWN]))
    row = [*first, *(number for part in others for number in (UNKNOWN, *part))]
    if not 1 <= len(row) <= longest:
        raise TrainError(f"{shorten(text)!r} has {len(row)} words; a classifier reads from 1 to {longest}")
    return row


def _lesson(pupil: Pupil, examples: Examples) -> Lesson:
    found = source(pupil, numbered(pupil, examples.texts))
    if pupil.frozen:
        found = Vectors(pupil.network, found)
    return Lesson(found, np.array(examples.labels, np.float64))
