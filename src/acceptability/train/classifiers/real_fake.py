"""Real and fake sentences, and the recipe ``real-fake`` that trains an encoder to distinguish them.

After Warstadt, Singh and Bowman (2019, §4). Half of the sentences are real, from a corpus. Half of the fakes are
sampled from a language model, the others are real sentences in which some words change places. The resulting classifier
calls a sentence acceptable if it looks real; ``train pooling --set encoder=DIR`` freezes its encoder and trains
acceptability on top of it.

**Permutation.** The paper permutes a random subset of the words of a sentence, but does not report how large the subset
is. Here its size is drawn first, uniformly from two to all words, so that single exchanges and complete jumbles both
occur. A fake must be detectable by its grammar, not by its spelling:

- A word is what spaces separate, without punctuation at its edges: final punctuation, commas, quotation marks and
  brackets stay in place, and ``don't`` and ``well-known`` remain whole.
- A word before a full stop that is not the last word (``Mr.``) does not move: it would leave the full stop behind.
- The initial capital stays: a word that moves to the front is capitalised, and the word that moves away from there is
  lowercased, if other sentences of the corpus show that it can be (names cannot, and stay in place).

Some fakes are good sentences nevertheless ("dogs and cats" for "cats and dogs"): the price of the method.

**Mixing.** Nothing but grammar should distinguish the kinds:

- Real and permuted sentences are normalised like the output of the language model (``models.sampling``): split into
  words and joined again, lowercased if the model is, with ``<unk>`` for words that it does not know. The model samples
  ``<unk>`` like any other word, as in the paper.
- All sentences have 3 to 60 words, as the model counts them; others are left out, and counted.
- Of a limited number, the real sentences are drawn from the whole corpus, each with the same chance. Without a limit,
  its files are read interleaved, so that a source that fills one file does not come in one piece.

Sentences are streamed and shuffled in buffers, so that memory does not grow with the corpus, but only with the limit,
if there is one. Every buffer has as many fakes as real sentences. A fake that equals a real sentence of its buffer is
replaced.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import CorpusError, ModelError, SpecError, shorten
from acceptability.generate.generator import write_sentences
from acceptability.models.sampling import TextNormalizer, draw_sentences, make_normalizer
from acceptability.models.sentence import SentenceNetworkShape
from acceptability.train.classifiers.word_classifiers import (
    WordTokenizer,
    build_inputs,
    check_options,
    check_packages,
    sample_encoder_options,
)
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.train.recipe import Recipe, RecipeOutput, TrainingJob, rename_options
from acceptability.types import Sentence

MIN_WORDS, MAX_WORDS = 3, 60
# Operating systems limit the number of open files; a corpus may have thousands.
_MAX_OPEN_FILES = 16
# Files are drawn in blocks, since one call of the random generator per line would be slow.
_LINES_AT_ONCE = 1024
# After so many attempts a sentence is given up: all its other orders may be real sentences too.
_MAX_TRIES = 20
# A language model that yields nothing but unusable sentences would otherwise be sampled forever.
_MAX_REJECTED = 20_000
_REQUIRED_PACKAGES = ("torch", "safetensors", "accelerate")
# A word begins and ends with a letter or digit; marks within it, as in "don't", belong to it.
_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")


def permute_words(words: Sequence[str], random: np.random.Generator) -> list[str] | None:
    """Return the words in another order; None if all orders are the same.

    >>> permute_words(["cats", "chase", "dogs"], np.random.default_rng(1))
    ['chase', 'cats', 'dogs']
    >>> permute_words(["very", "very"], np.random.default_rng(1)) is None
    True
    """
    if len(set(words)) < 2:
        return None
    # This ends: there are at least two different words, hence another order.
    while True:
        count = int(random.integers(2, len(words) + 1))
        # The first elements of a random permutation are both a random subset and in random order.
        chosen_indices = random.permutation(len(words))[:count].tolist()
        reordered = list(words)
        for target, source in zip(sorted(chosen_indices), chosen_indices, strict=True):
            reordered[target] = words[source]
        # Drawn again if nothing changed: the permutation may be the identity, or exchange equal words.
        if reordered != list(words):
            return reordered


def permute_text(text: str, random: np.random.Generator, lowercase_words: Collection[str] = ()) -> str | None:
    """Return a sentence in which some words have changed places; None if there is no other order.

    Args:
        lowercase_words: Words known to be written without a capital. A capitalised first word moves only if it is one
            of them.

    >>> permute_text("The cat, they say, sees Mr. Fox.", np.random.default_rng(2), lowercase_words={"the"})
    'Fox cat, they say, sees Mr. the.'
    """
    word_spans = [match.span() for match in _WORD.finditer(text)]
    spans = [(start, end) for start, end in word_spans if text[end : end + 1] != "." or (start, end) == word_spans[-1]]
    if not spans:
        return None
    words = [text[start:end] for start, end in spans]
    first = words[0]
    has_initial_capital = spans[0] == word_spans[0] and first[0].isupper()
    if has_initial_capital and _lowercase_initial(first) not in lowercase_words:
        spans, words, has_initial_capital = spans[1:], words[1:], False
    # Lowercased before and capitalised after the permutation, so that the capital does not show what was first.
    reordered = permute_words([_lowercase_initial(first), *words[1:]] if has_initial_capital else words, random)
    if reordered is None:
        return None
    if has_initial_capital:
        reordered[0] = reordered[0][0].upper() + reordered[0][1:]
    return _replace_words(text, spans, reordered)


def collect_lowercase_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words that occur without a capital.

    >>> sorted(collect_lowercase_words(["The cat saw Ann.", "I like the sea."]))
    ['cat', 'like', 'saw', 'sea', 'the']
    """
    return frozenset(word for text in texts for word in _WORD.findall(text) if word.islower())


def _lowercase_initial(word: str) -> str:
    return word[0].lower() + word[1:]


def _replace_words(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    """Return a text with other words in some spans."""
    parts, last = [], 0
    for (start, end), word in zip(spans, words, strict=True):
        parts += [text[last:start], word]
        last = end
    return "".join([*parts, text[last:]])


@dataclass(frozen=True)
class RealFakeSource:
    """The origin of real and fake sentences.

    Args:
        lm: The language model that half of the fakes are sampled from; empty if all are permuted.
        buffer: How many real sentences are shuffled together.
        lower: Whether all sentences are lowercased, even if the model has capitals.
        tally: Counts the sentences that are generated or left out, as it happens.
    """

    corpus: Corpus
    lm: str
    seed: int
    buffer: int = 10_000
    lower: bool = False
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.buffer < 2:
            raise SpecError(f"buffer is {self.buffer}; expected 2 or more sentences")
        if self.seed < 0:
            raise SpecError(f"seed is {self.seed}; expected 0 or more")


def generate_real_fake_texts(
    corpus: Corpus,
    lm: str,
    *,
    seed: int,
    buffer: int = 10_000,
    limit: int | None = None,
    lower: bool = False,
    tally: Counter[str] | None = None,
) -> Iterator[tuple[str, int]]:
    """Return sentences with labels, 1 for real and 0 for fake, until the corpus has been read once.

    Args:
        lm: The language model that half of the fakes are sampled from; "" if all are permuted.
        buffer: How many real sentences are shuffled together.
        limit: The most sentences to generate, real and fake together; they are balanced even so, and the real ones are
            drawn from the whole corpus.
        lower: Whether all sentences are lowercased, even if the model has capitals.
        tally: Counts the sentences that are generated or left out, and why, as it happens.
    """
    source = RealFakeSource(corpus, lm, seed, buffer, lower, Counter() if tally is None else tally)
    return ((sentence.text, int(sentence.label or 0)) for sentence in generate_sentences(source, limit))


def generate_sentences(source: RealFakeSource, limit: int | None = None) -> Iterator[Sentence]:
    """Return sentences with labels and the tag ``kind``: real, sampled or permuted."""
    if limit is not None and limit < 2:
        raise SpecError(f"the count is {limit}; ask for at least two sentences, one real and one fake")
    text_form = make_normalizer(source.lm, lower=source.lower)
    lm_texts = _sample_from_lm(source, text_form) if source.lm else iter(())
    return _mix_real_and_fake(source, text_form, lm_texts, limit)


def _mix_real_and_fake(
    source: RealFakeSource, text_form: TextNormalizer, lm_texts: Iterator[str], limit: int | None
) -> Iterator[Sentence]:
    # A stream of its own: draw_sentences is seeded with the seed alone.
    random = np.random.default_rng([source.seed, 1])
    lines = (
        _filter_by_length(_interleave_files(source.corpus, random), text_form, source.tally)
        if limit is None
        # Of an odd number of sentences, one more is real.
        else iter(_sample_lines(source, limit - limit // 2, random, text_form))
    )
    remaining, produced = limit, 0
    while raw := list(
        islice(lines, source.buffer if remaining is None else min(source.buffer, remaining - remaining // 2))
    ):
        buffer = _ShuffleBuffer(text_form, tuple(raw), random, source.tally)
        fake_count = len(raw) if remaining is None else min(len(raw), remaining // 2)
        lm_count = fake_count // 2 if source.lm else 0
        labelled_texts = [(text, 1, "real") for text in buffer.real_texts]
        labelled_texts += [(text, 0, "sampled") for text in islice(buffer.drop_real_texts(lm_texts), lm_count)]
        labelled_texts += [(text, 0, "permuted") for text in islice(buffer.generate_permuted(), fake_count - lm_count)]
        # Shuffled, so that the stream does not have the kinds one after another.
        for text_index in random.permutation(len(labelled_texts)).tolist():
            text, label, kind = labelled_texts[text_index]
            produced += 1
            source.tally[kind] += 1
            yield Sentence(f"{kind}/{produced}", text, label, tags={"kind": kind})
        remaining = None if remaining is None else remaining - len(labelled_texts)
        if remaining is not None and remaining < 1:
            return
    if not produced:
        raise CorpusError(f"the corpus has no sentence of {MIN_WORDS} to {MAX_WORDS} words: no fakes can be made of it")


def _sample_lines(
    source: RealFakeSource, count: int, random: np.random.Generator, text_form: TextNormalizer
) -> list[str]:
    """Return lines drawn from the whole corpus with equal chances, in random order: all usable ones if they are few."""
    # Every line gets a random number. Those with the lowest are kept, on a heap whose first line has the highest.
    # Only a line that would be kept is split into words, which takes far longer than reading it.
    kept: list[tuple[float, int, str]] = []
    for position, (line, number) in enumerate(zip(source.corpus.sentences(), _draw_numbers(random), strict=False)):
        if len(kept) == count and number >= -kept[0][0]:
            continue
        if problem := _find_length_problem(text_form, line):
            source.tally[f"real, {problem}"] += 1
        elif len(kept) < count:
            heapq.heappush(kept, (-number, position, line))
        else:
            heapq.heapreplace(kept, (-number, position, line))
    return [line for _, _, line in sorted(kept)]


def _draw_numbers(random: np.random.Generator) -> Iterator[float]:
    while True:
        yield from random.random(_LINES_AT_ONCE).tolist()


def _interleave_files(corpus: Corpus, random: np.random.Generator) -> Iterator[str]:
    """Yield the sentences of a corpus, from several files at once, with probabilities proportional to their sizes."""
    unopened_paths = [corpus.files[file_index] for file_index in random.permutation(len(corpus.files))]
    open_files: list[tuple[Iterator[str], int]] = []
    while unopened_paths or open_files:
        while unopened_paths and len(open_files) < _MAX_OPEN_FILES:
            path = unopened_paths.pop()
            # An empty file has size 0, and would leave nothing to draw from if it were the only one.
            open_files.append((Corpus((path,)).sentences(), max(path.stat().st_size, 1)))
        sizes = np.array([size for _, size in open_files], float)
        for file_index in random.choice(len(open_files), _LINES_AT_ONCE, p=sizes / sizes.sum()).tolist():
            line = next(open_files[file_index][0], None)
            if line is None:
                # The other indices drawn with this one are no longer valid.
                del open_files[file_index]
                break
            yield line


def _filter_by_length(lines: Iterator[str], text_form: TextNormalizer, tally: Counter[str]) -> Iterator[str]:
    """Yield the lines that are neither too short nor too long after normalisation."""
    for line in lines:
        problem = _find_length_problem(text_form, line)
        if problem:
            tally[f"real, {problem}"] += 1
        else:
            yield line


def _find_length_problem(text_form: TextNormalizer, text: str) -> str:
    word_count = len(text_form.split_words(text))
    return "too short" if word_count < MIN_WORDS else "too long" if word_count > MAX_WORDS else ""


def _sample_from_lm(source: RealFakeSource, text_form: TextNormalizer) -> Iterator[str]:
    """Return an endless stream of sentences sampled from the model."""

    def count_rejection(problem: str) -> None:
        source.tally[f"sampled, {problem}"] += 1

    lm_texts = draw_sentences(
        source.lm, None, seed=source.seed, longest=MAX_WORDS, unknown=True, on_rejected=count_rejection
    )
    accepted = _filter_accepted(lm_texts, lambda text: _find_length_problem(text_form, text), source.tally)
    # Lowercased last: the length is counted in the model's own words.
    return map(str.lower, accepted) if source.lower else accepted


def _filter_accepted(lm_texts: Iterator[str], find_problem: Callable[[str], str], tally: Counter[str]) -> Iterator[str]:
    """Yield the model's sentences that have no problem; too many rejections in a row are an error."""
    rejected = 0
    for text in lm_texts:
        if problem := find_problem(text):
            tally[f"sampled, {problem}"] += 1
            rejected += 1
        else:
            rejected = 0
            yield text
        if rejected >= _MAX_REJECTED:
            raise ModelError(
                f"the last {rejected:,} sentences of the model were rejected: {problem}, such as {shorten(text)!r}"
            )


@dataclass(frozen=True)
class _ShuffleBuffer:
    """Real sentences that are shuffled together, and the source of fakes for them.

    Args:
        raw: The sentences before normalisation.
    """

    text_form: TextNormalizer
    raw: tuple[str, ...]
    random: np.random.Generator
    tally: Counter[str]

    @cached_property
    def real_texts(self) -> list[str]:
        """The sentences after normalisation."""
        return [self.text_form.normalize(text) for text in self.raw]

    @cached_property
    def _real_text_set(self) -> frozenset[str]:
        return frozenset(self.real_texts)

    def drop_real_texts(self, lm_texts: Iterator[str]) -> Iterator[str]:
        """Return the model's sentences without those that equal a real one."""
        return _filter_accepted(
            lm_texts, lambda text: "a real sentence" if text in self._real_text_set else "", self.tally
        )

    def generate_permuted(self) -> Iterator[str]:
        """Yield an endless stream of permuted sentences, which uses all real ones equally often."""
        lowercase_words = collect_lowercase_words(self.raw)
        while True:
            n_permuted = 0
            for text_index in self.random.permutation(len(self.raw)).tolist():
                text = self._permute_text(self.raw[text_index], lowercase_words)
                if text is None:
                    self.tally["permuted, no other order"] += 1
                else:
                    n_permuted += 1
                    yield text
            if not n_permuted:
                raise CorpusError("in none of the sentences can words change places: no fakes can be made of them")

    def _permute_text(self, text: str, lowercase_words: Collection[str]) -> str | None:
        """Return a permuted sentence that equals no real one; None if there is none after some attempts."""
        for _ in range(_MAX_TRIES):
            candidate = permute_text(text, self.random, lowercase_words)
            if candidate is None:
                return None
            if (formed_text := self.text_form.normalize(candidate)) not in self._real_text_set:
                return formed_text
        return None


def generate_real_fake_sentences(
    corpus: Sequence[str | Path],
    count: int,
    *,
    lm: str = "",
    seed: int = 0,
    lower: bool = False,
    tally: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """Return real sentences and fakes, as ``acceptability generate real-fake`` writes them.

    Args:
        corpus: Files or folders of text, one sentence a line.
        count: How many sentences, real and fake together; a corpus that has too few is an error.
        lm: The language model that half of the fakes are sampled from; without it all are permuted.
        lower: Whether all sentences are lowercased, even if the model has capitals.
        tally: Counts the sentences that are generated or left out, and why.
    """
    source = RealFakeSource(open_corpus(corpus), lm, seed, lower=lower, tally=Counter() if tally is None else tally)
    return _require_count(generate_sentences(source, count), count)


def _require_count(generated: Iterator[Sentence], count: int) -> Iterator[Sentence]:
    produced = 0
    for sentence in generated:
        produced += 1
        yield sentence
    if produced < count:
        raise CorpusError(f"the corpus gives {produced:,} sentences, real and fake; {count:,} were requested")


def write_real_fake(
    corpus: Sequence[str | Path], lm: str, path: Path, count: int, *, seed: int, lower: bool = False
) -> Counter[str]:
    """Write real sentences and fakes as a suite, and return how many of each kind were generated or left out."""
    tally: Counter[str] = Counter()
    write_sentences(generate_real_fake_sentences(corpus, count, lm=lm, seed=seed, lower=lower, tally=tally), path)
    return tally


@rename_options(
    least="min_count",
    held="dev_sentences",
    rate="learning_rate",
    batch="batch_size",
)
@dataclass(frozen=True)
class RealFakeRecipe(Recipe):
    """A pooling classifier that tells real sentences from fakes, for its encoder.

    The real sentences are those of the text. Fakes are sampled from a language model, or are real sentences in which
    some words change places.

    Args:
        lm: The language model that half of the fakes are sampled from, such as ``recurrent:DIR``; without it all are
            permuted real sentences.
        sentences: The number of training sentences, real and fake; 0 means as many as the text yields.
        dev_sentences: The number of sentences of the dev set, real and fake, that decide when to stop.
        vectors: The word vectors: empty (they are trained), a file in GloVe's format or .npz, ``recurrent:DIR`` (the
            embeddings of a language model of this package) or ``elmo:recurrent:DIR`` (its layers, mixed).
        embedding: The dimension of word vectors that are trained.
        hidden: The width of the LSTM in each direction.
        layers: The number of layers of the LSTM.
        dropout: The dropout rate of the inputs of every layer.
        learning_rate: The learning rate of Adam.
        batch_size: How many sentences a step reads.
        epochs: The largest number of epochs.
        patience: After how many evaluations on the dev set without a better MCC training stops; 0 means never.
        evaluate_every: After how many steps the dev set is evaluated; 0 means after every epoch.
        save_every: After how many steps a checkpoint is saved; 0 means every few minutes.
        words: How text is split into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are lowercased; a language model has its own rule.
        vocabulary: The largest size of the vocabulary: the most frequent words, or the first of a file of vectors and
            those of the text that are further down in it; 0 means unlimited.
        min_count: How often a word must occur in the text for a vector of its own to be trained.
    """

    lm: str = ""
    sentences: int = 0
    dev_sentences: int = 2000
    vectors: str = ""
    embedding: int = 300
    hidden: int = 500
    layers: int = 1
    dropout: float = 0.2
    learning_rate: float = 1e-3
    batch_size: int = 64
    epochs: int = 20
    patience: int = 4
    evaluate_every: int = 0
    save_every: int = 0
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    min_count: int = 2
    seed: int = 1

    kind: ClassVar[str] = "real-fake"
    opened_as: ClassVar[str] = "classifier"
    reads: ClassVar[str] = "text"

    def sample_hyperparameters(self, seed: int) -> RealFakeRecipe:
        """Return the recipe with hyperparameters from the ranges of a search; see the function of this name."""
        return sample_hyperparameters(seed, self)

    def __post_init__(self) -> None:
        counts = ("embedding", "hidden", "layers", "batch_size", "epochs", "min_count", "dev_sentences")
        check_options(self, counts, ("sentences", "vocabulary", "patience", "seed", "evaluate_every", "save_every"))

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Generate fakes, train a network to distinguish them from real sentences, and save the classifier."""
        check_packages(self.kind, _REQUIRED_PACKAGES)
        # Recipes are listed without torch.
        from acceptability.train.classifiers.word_training import (
            build_classifier,
            collect_facts,
            count_unigrams,
            prepare_data,
            save_classifier,
            train_discriminator,
        )
        from acceptability.train.trainer import ProcessGroup

        process_group = ProcessGroup()
        tokenizer = WordTokenizer(self.words, self.lower, self.vocabulary, self.min_count)
        inputs = build_inputs(self.vectors, job.corpus.sentences(), tokenizer, self.embedding)
        shape = SentenceNetworkShape("pooling", "max", **inputs.shape_options, layers=self.layers, hidden=self.hidden)
        classifier = build_classifier(shape, inputs, self.dropout, self.seed)
        classifier.network.to(process_group.device)
        # The first process stores the generated sentences in the checkpoint, from which the others read them.
        with process_group.main_process_first():
            train_data, dev_data = prepare_data(self, job, classifier)
        training_result = train_discriminator(self, job, classifier, (train_data, dev_data), process_group)
        save_classifier(classifier, job.out)
        return RecipeOutput(
            count_unigrams(classifier, train_data),
            {**classifier.to_facts(), **collect_facts(classifier, train_data, dev_data, training_result)},
        )


def sample_hyperparameters(seed: int, recipe: RealFakeRecipe) -> RealFakeRecipe:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3."""
    return replace(recipe, **sample_encoder_options(seed))
