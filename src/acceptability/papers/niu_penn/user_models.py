"""A user's own model under the protocols of the papers: its scores, its perplexity, and the rows it gets.

``StudyModel`` scores suites with several reductions in one pass; the study of CoLA uses it too. ``rescore_model``
returns the rows of one model in Tables 1 to 6 of Niu and Penn (2020). Texts that the user gives beside models become a
column of Table 1 each, on which perplexities are measured; treebanks are for Table 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acceptability.api.interface.arguments import as_reduction
from acceptability.api.scoring import ProgressCallback, score_reductions
from acceptability.errors import MissingExtra, ModelError, SpecError
from acceptability.models import load_model
from acceptability.papers.cells import Cell, PublishedValues
from acceptability.papers.niu_penn.model_rows import choose_slor, describe_training_text
from acceptability.papers.niu_penn.pbc_tables import (
    Microgroup,
    NumberOrReason,
    ScoresByNorm,
    compute_table_2,
    compute_table_3,
    compute_table_4,
    compute_table_5,
    load_labelled_cola,
    lowercase_suite,
    make_model_cell,
    select_minimal_structures,
)
from acceptability.papers.niu_penn.sense import (
    NORMS,
    compute_colorless_cell,
    compute_table_6,
    is_treebank,
    load_permutations,
    make_sense_suite,
)
from acceptability.protocols import EncodedQuery, Engine, Model
from acceptability.suites import load_suite
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.train.perplexity import (
    Perplexity,
    add_eos,
    is_improper,
    is_masked,
    keep_unknown_symbol,
    perplexity,
    pseudo_perplexity,
)
from acceptability.types import ModelOutput, Query, Suite

# The paper's names of the reductions that need no unigrams.
_PLAIN_REDUCTIONS = {"Raw": "lp", "Norm": "mean_lp"}

WORD_RULE = "split"
"""How words are counted: the same for every model, whatever its own tokens are, so that perplexities are comparable."""

_CORPUS_COLUMN = "text of --corpus"
_CORPUS_NEEDED = "needs plain text that the model was not trained on, one sentence a line: add --corpus FILE"
_NO_PERPLEXITY = (
    "a model of this kind does not predict where a sentence ends, and so gives no text a probability: "
    "it has no perplexity (a masked model sees both sides of each word, a classifier sees no words, uniform no ends)"
)
_IMPROPER_NOTE = (
    "improper: the probabilities of all words sum to more than 1, so that this only looks like a perplexity; the paper "
    "prints its own for what it calls a softmax on already softmaxed values"
)
_PSEUDO_NOTE = (
    "a pseudo-perplexity: each word was predicted from both sides (Salazar et al. 2020), so that it compares with "
    "those of masked models of the same variant only, and with no perplexity"
)

_SPLIT_NAMES = ("train", "dev", "valid", "validation", "test")
"""File and folder names that mean nothing without the folder above them."""


@dataclass(frozen=True)
class StudyModel:
    """A model, and how it is run.

    Args:
        model: The spec or name of the model.
        engine: Where it runs: ``local`` or ``ray(...)``.
        progress: Called with the progress of scoring.
    """

    model: str
    engine: str | Engine = "local"
    progress: ProgressCallback | None = None

    def compute_scores(self, suite: Suite, reductions: Mapping[str, str]) -> ScoresByNorm:
        """Return the scores of a suite by normalisation, all from a single pass of the model.

        Args:
            suite: The sentences.
            reductions: The spec of each reduction, by the name of the normalisation.
        """
        # A cluster loads models by their spec on each worker, and the lenient variant has none.
        model = make_lenient(self.model) if self.engine == "local" else self.model
        all_scores = score_reductions(
            suite, model, list(reductions.values()), engine=self.engine, progress=self.progress
        )
        return dict(zip(reductions, all_scores, strict=True))


@dataclass(frozen=True)
class LenientModel(Model):
    """A word model that also accepts sentences in which it knows no word at all.

    Elsewhere such a sentence is refused, because its score is about the vocabulary and not about the sentence. The
    papers score it as that many ``<unk>``, and so do their studies. Nothing but the signature and the check differ.
    """

    model: Model

    @property
    def signature(self) -> str:
        """The signature of the model, marked as lenient."""
        # A different signature keeps these scores apart in the store: they must never stand in for a sentence that the
        # strict model refuses.
        return f"{self.model.signature}[lenient]"

    def encode(self, queries: Sequence[Query]) -> Sequence[EncodedQuery]:
        """Return the queries, encoded by the model."""
        return self.model.encode(queries)

    def run(self, batch: Sequence[EncodedQuery]) -> Sequence[ModelOutput]:
        """Return the model's output for each query."""
        return self.model.run(batch)

    def begin(self, batch: Sequence[Any]) -> Callable[[], Sequence[ModelOutput]]:
        """Start a forward pass of the model."""
        return self.model.begin(batch)

    @property
    def budget(self) -> int:
        """The batch size that suits the model."""
        return self.model.budget

    @property
    def packing(self) -> str:
        """Which queries share a batch."""
        return self.model.packing

    @property
    def is_unknown(self) -> Callable[[str], bool] | None:
        """The function that returns whether a token is outside the vocabulary of the model."""
        return self.model.is_unknown

    @property
    def device_class(self) -> str | None:
        """The class of device of the model, if that computes in half precision."""
        return self.model.device_class

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score."""
        return self.model.omits_unknown


def make_lenient(model: str) -> str | LenientModel:
    """Return the lenient variant of a model that refuses sentences of unknown words; any other model as it is.

    >>> make_lenient("uniform")
    'uniform'
    """
    # The papers give every unknown word the whole probability of <unk>.
    loaded = load_model(keep_unknown_symbol(model))
    lenient = loaded.as_lenient()
    return model if lenient is loaded else LenientModel(lenient)


def rescore_model(
    study_model: StudyModel, texts: StudyTexts, groups: Sequence[Microgroup], values: PublishedValues
) -> list[Cell]:
    """Return the rows of one model in every table, without the notes on its training text.

    Args:
        study_model: The model.
        texts: The user's texts.
        groups: The groups of Table 4.
        values: The paper's values.
    """
    model = study_model.model
    reductions, unigrams, missing = _choose_reductions(model)
    short = {norm: spec for norm, spec in reductions.items() if norm in NORMS}
    return [
        compute_colorless_cell(model, values),
        *compute_table_1(model, texts.plain_corpora, study_model.progress),
        *_compute_cola_tables(study_model, reductions, (unigrams, missing), groups),
        *_compute_inquiry_table(study_model),
        *compute_table_6(
            model,
            _score_suite(study_model, load_permutations(), short),
            _score_optional_suite(study_model, texts.sense, short),
        ),
    ]


def add_training_notes(model: str, cells: Sequence[Cell]) -> list[Cell]:
    """Return the rows of a model with notes on its training text, if its folder describes it."""
    # The cells in the paper's own rows name the training text in the source: hence a separate step for the others.
    training_note = describe_training_text(model)
    return [replace(cell, note="; ".join(filter(None, (cell.note, training_note)))) for cell in cells]


def _compute_cola_tables(
    study_model: StudyModel, reductions: Mapping[str, str], slor_notes: tuple[str, str], groups: Sequence[Microgroup]
) -> list[Cell]:
    cola = load_labelled_cola()
    with_case = study_model.compute_scores(cola, reductions)
    scores_by_case = {
        "with case": with_case,
        "lower": study_model.compute_scores(lowercase_suite(cola), _PLAIN_REDUCTIONS),
    }
    return [
        *compute_table_2(study_model.model, cola, with_case, *slor_notes),
        # Tables 4 and 5 of the paper have no SLOR.
        *compute_table_4(study_model.model, groups, {norm: with_case[norm] for norm in _PLAIN_REDUCTIONS}),
        *compute_table_5(study_model.model, cola, scores_by_case, _PLAIN_REDUCTIONS),
    ]


def _compute_inquiry_table(study_model: StudyModel) -> list[Cell]:
    minimal = select_minimal_structures(load_suite("li_adger"))
    # One suite of all strings, so that the model runs once; the structures then pick their scores by id.
    strings = Suite("minimal structures", tuple(sentence for strings in minimal.values() for sentence in strings))
    return list(compute_table_3(study_model.model, minimal, study_model.compute_scores(strings, _PLAIN_REDUCTIONS)))


def _score_optional_suite(
    study_model: StudyModel, suite: Suite | None, reductions: Mapping[str, str]
) -> tuple[Suite, ScoresByNorm] | None:
    return _score_suite(study_model, suite, reductions) if suite else None


def _score_suite(study_model: StudyModel, suite: Suite, reductions: Mapping[str, str]) -> tuple[Suite, ScoresByNorm]:
    return suite, study_model.compute_scores(suite, reductions)


def _choose_reductions(model: str) -> tuple[dict[str, str], str, str]:
    """Return the reductions of Table 2, a note on the unigrams of SLOR, and the reason if SLOR is left out."""
    slor, unigrams = choose_slor(model)
    # SLOR needs the package wordfreq, unless the model has unigrams of its own. Without it, the other rows still
    # appear.
    try:
        as_reduction(slor)
    except MissingExtra as error:
        return _PLAIN_REDUCTIONS, unigrams, str(error)
    return {**_PLAIN_REDUCTIONS, "SLOR": slor}, unigrams, ""


def compute_table_1(model: str, texts: Sequence[NamedCorpus], progress: ProgressCallback | None) -> list[Cell]:
    """Return the perplexity per word on each text, or the reason why there is none.

    Masked models get their pseudo-perplexity, in a column of its own.

    Args:
        model: The model.
        texts: The texts.
        progress: Called with the progress of scoring.
    """
    if not texts:
        return [make_model_cell("Table 1", model, _CORPUS_COLUMN, (None, _CORPUS_NEEDED), model)]
    return [cell for text in texts for cell in _compute_text_cells(model, text, progress)]


def _compute_text_cells(model: str, text: NamedCorpus, progress: ProgressCallback | None) -> Iterator[Cell]:
    yield make_model_cell("Table 1", model, text.name, _compute_perplexity(model, text, progress), model)
    # In a column of its own: it is not comparable with a perplexity, of which a masked model has none.
    if is_masked(model):
        number = _compute_pseudo_perplexity(model, text, progress)
        yield make_model_cell("Table 1", model, f"pseudo-perplexity, {text.name}", number, model)


def _compute_perplexity(model: str, text: NamedCorpus, progress: ProgressCallback | None) -> NumberOrReason:
    # A perplexity is of a probability distribution over texts, which needs the probability that a sentence ends.
    try:
        add_eos(model)
    except SpecError:
        return None, _NO_PERPLEXITY
    # ``perplexity`` refuses an improper model unless the caller asks for it by name: the note explains the number.
    improper = is_improper(model)
    try:
        result = perplexity(model, text.corpus, words=WORD_RULE, improper=improper, progress=progress)
    except ModelError as error:
        return None, str(error)
    return result.perplexity, "; ".join(
        filter(None, (_IMPROPER_NOTE if improper else "", _describe_perplexity(result, text)))
    )


def _compute_pseudo_perplexity(model: str, text: NamedCorpus, progress: ProgressCallback | None) -> NumberOrReason:
    try:
        result = pseudo_perplexity(model, text.corpus, words=WORD_RULE, progress=progress)
    except ModelError as error:
        return None, str(error)
    return result.pseudo_perplexity, (
        f"{_PSEUDO_NOTE}; on {_describe_text(text)}: {result.words:,} words by the rule {WORD_RULE!r}, without ends of "
        f"sentences; {result.signature}"
    )


def _describe_perplexity(result: Perplexity, text: NamedCorpus) -> str:
    unknown = "" if result.unknown is None else f", {result.unknown:,} of them unknown"
    return (
        f"on {_describe_text(text)}, another text than the BNC and WikiText-103: it compares with others on this text, "
        f"and not with the paper's; {result.words:,} words by the rule {WORD_RULE!r}, ends of sentences among "
        f"them{unknown}; {result.signature}"
    )


def _describe_text(text: NamedCorpus) -> str:
    """Return the name of a text, with the names of its files unless the name says it."""
    files = [path.name for path in text.corpus.files]
    if len(files) == 1 and text.name.endswith(files[0]):
        return text.name
    return f"{text.name} ({', '.join(files[:3])}{'…' if len(files) > 3 else ''})"


@dataclass(frozen=True)
class NamedCorpus:
    """Plain text, and the name of its column."""

    name: str
    corpus: Corpus


@dataclass(frozen=True)
class StudyTexts:
    """The texts that the user gave beside models.

    Args:
        plain_corpora: Texts for perplexities, in the order in which they were given.
        sense: Sentences with and without sense, made from the treebanks; None if there are no treebanks.
    """

    plain_corpora: tuple[NamedCorpus, ...] = ()
    sense: Suite | None = None


def read_study_texts(locations: Sequence[str | Path]) -> StudyTexts:
    """Return the user's texts, one for each path, and the suite made from their treebanks (CoNLL-U files).

    Args:
        locations: Files and folders. In a folder, treebanks and plain text may be mixed.
    """
    if not locations:
        return StudyTexts()
    treebanks = tuple(path for path in open_corpus(locations).files if is_treebank(path))
    files_by_path = {Path(location): _find_plain_files(location) for location in locations}
    names = dict(zip(files_by_path, shorten_names(list(files_by_path)), strict=True))
    texts = tuple(NamedCorpus(names[path], Corpus(files)) for path, files in files_by_path.items() if files)
    return StudyTexts(texts, make_sense_suite(Corpus(treebanks)) if treebanks else None)


def _find_plain_files(location: str | Path) -> tuple[Path, ...]:
    return tuple(path for path in open_corpus([location]).files if not is_treebank(path))


def shorten_names(paths: Sequence[Path]) -> list[str]:
    """Return a distinct short name for each path: its last part, with as many folders as are needed.

    >>> shorten_names([Path("/a/mix/test"), Path("/a/wiki"), Path("/b/wiki"), Path("/b/held-out.txt")])
    ['mix/test', 'a/wiki', 'b/wiki', 'held-out.txt']
    """
    parts_of_paths = [path.resolve().parts for path in paths]
    lengths = [2 if parts[-1] in _SPLIT_NAMES else 1 for parts in parts_of_paths]
    while True:
        names = ["/".join(parts[-length:]) for parts, length in zip(parts_of_paths, lengths, strict=True)]
        longer = [length + (names.count(name) > 1) for name, length in zip(names, lengths, strict=True)]
        # The same path given twice never becomes distinct: without this limit the loop would not end.
        longer = [min(length, len(parts)) for length, parts in zip(longer, parts_of_paths, strict=True)]
        if longer == lengths:
            return names
        lengths = longer
