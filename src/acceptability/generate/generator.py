"""Generation of sentences from paradigms, with labels, tags and contrasts; deterministic for a given seed.

Every combination of a paradigm's factors becomes a sentence. A sentence is acceptable if one of the conditions under
``acceptable`` holds; a contrast is two sentences of a paradigm that differ in one factor and in their label. No
sentence is generated twice: words that would repeat one are rejected and resampled.

Words are sampled slot by slot, in the order of the file, since a slot may refer to the features of an earlier one. No
content word occurs twice in a paradigm. The candidates of a slot are cached for each combination of the features that
it depends on. Files are written sentence by sentence, so that memory does not grow with their size.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from acceptability.errors import SpecError, SuiteError
from acceptability.generate.lexicon import (
    TEXT_CATEGORY,
    Feature,
    FeatureValues,
    LexiconEntry,
    inflect,
    list_numbers,
    load_features,
    load_lexicon,
)
from acceptability.generate.paradigm import (
    Condition,
    Hole,
    Paradigm,
    ParadigmFile,
    Reference,
    Slot,
    TemplatePiece,
    Term,
    fill_template,
    format_sentence,
    tidy_spaces,
    values_agree,
)
from acceptability.types import Contrast, Sentence, Suite, make_contrast

# Function words (determiners, auxiliaries, pronouns) may occur twice in a sentence.
_CONTENT_CATEGORIES = ("noun", "name", "verb", "adjective", "adverb", TEXT_CATEGORY)
# Rejection sampling needs limits: without them a paradigm whose slots exclude each other would never end. A slot is
# resampled often enough to avoid the few words that are used already, a paradigm often enough for rare combinations.
_MAX_FAILED_TRIES = 30
_MAX_FAILED_COMBINATIONS = 5_000
_MAX_ATTEMPTS = 500


@dataclass(frozen=True, slots=True)
class SlotFiller:
    """The word in a slot, with its inflection, such as its number."""

    word: LexiconEntry
    inflection: Mapping[str, str] = field(default_factory=dict)

    def values(self, feature: str) -> FeatureValues:
        """Return the values of a feature: the one chosen for the inflection, or those of the word."""
        return (self.inflection[feature],) if feature in self.inflection else self.word.values(feature)


SlotFillers = dict[str, SlotFiller]
InflectionOptions = tuple[tuple[str, FeatureValues], ...]
Candidate = tuple[LexiconEntry, InflectionOptions]


@dataclass(frozen=True)
class SlotSampler:
    """Samples words for a paradigm from the lexicon and the words that its file defines."""

    paradigm: Paradigm
    file_words: tuple[LexiconEntry, ...]
    random: Random
    _candidate_cache: dict[tuple[object, ...], tuple[Candidate, ...]] = field(default_factory=dict)
    _free_word_cache: dict[str, Sequence[LexiconEntry]] = field(default_factory=dict)

    def sample_fillers(self) -> Iterator[SlotFillers]:
        """Yield the words of successive paradigms: endlessly, or for all combinations of crossed slots."""
        if self.paradigm.cross:
            yield from self._iter_crossed()
            return
        while True:
            yield self._sample_one(self._sample_rows())

    def _sample_rows(self) -> dict[str, str]:
        """Return the words of one random row of every table."""
        tables = self.paradigm.rows.values()
        return {slot: word for table in tables for slot, word in self.random.choice(_table_to_rows(table)).items()}

    def _iter_crossed(self) -> Iterator[SlotFillers]:
        """Yield words for every combination of the crossed slots in which they fit together."""
        any_fits, failed_tries = False, 0
        for combination in product(*(self._list_alternatives(name) for name in self.paradigm.cross)):
            fixed = {slot: lemma for choice in combination for slot, lemma in choice.items()}
            # Combinations that do not fit are skipped. A long run of them means that the slots exclude each other, and
            # trying the rest of a large product could take days.
            failed_tries += 1
            if self._can_fill(fixed):
                any_fits, failed_tries = True, 0
                yield self._sample_one(fixed)
            elif failed_tries == _MAX_FAILED_COMBINATIONS:
                raise SuiteError(self._explain_failure(fixed))
        if not any_fits:
            raise SuiteError(f"{self.paradigm.where}: no combination of {', '.join(self.paradigm.cross)} fits")

    def _list_alternatives(self, name: str) -> list[dict[str, str]]:
        if name in self.paradigm.rows:
            return _table_to_rows(self.paradigm.rows[name])
        slot = self.paradigm.slots[name]
        words = self._find_free_words(slot) if slot.spec else _texts_as_words(slot)
        return [{name: word.lemma} for word in words]

    def _can_fill(self, fixed: Mapping[str, str]) -> bool:
        return any(self._try_fill(fixed) is not None for _ in range(_MAX_FAILED_TRIES))

    def _sample_one(self, fixed: Mapping[str, str]) -> SlotFillers:
        """Return words for one paradigm; an error if sampling keeps failing."""
        for _ in range(_MAX_ATTEMPTS):
            fillers = self._try_fill(fixed)
            if fillers is not None:
                return fillers
        raise SuiteError(self._explain_failure(fixed))

    def _try_fill(self, fixed: Mapping[str, str]) -> SlotFillers | None:
        """Return a word for every slot, or None if sampling reached a slot without a fitting word."""
        # No backtracking: after a failure the caller starts again from the first slot.
        fillers: SlotFillers = {}
        used: set[str] = set()
        for name, slot in self.paradigm.slots.items():
            filler = self._fill_slot(slot, fillers, fixed.get(name), used)
            if filler is None:
                return None
            fillers[name] = filler
            # By lemma: "the dog saw the dogs" repeats a word as well.
            if filler.word.category in _CONTENT_CATEGORIES:
                used.add(filler.word.lemma)
        return fillers

    def _fill_slot(self, slot: Slot, fillers: SlotFillers, lemma: str | None, used: set[str]) -> SlotFiller | None:
        candidates = self._find_candidates(slot, fillers, lemma)
        if not candidates:
            return None
        for _ in range(_MAX_FAILED_TRIES):
            # Not choice(), which consumes other random bits: the sentences of every seed would change.
            word, options = candidates[int(self.random.random() * len(candidates))]
            # A word that a row or a crossed slot prescribes is taken even if it occurs already.
            if lemma is not None or word.lemma not in used:
                return SlotFiller(word, {name: _pick_value(values, self.random) for name, values in options})
        return None

    def _find_candidates(self, slot: Slot, fillers: SlotFillers, lemma: str | None) -> tuple[Candidate, ...]:
        terms = slot.spec.terms if slot.spec else ()
        resolved_terms = [(term, _resolve_term(term, fillers)) for term in terms]
        # The resolved values determine the candidates. There are few combinations, but very many paradigms.
        key = (slot.name, lemma, *(values for _, values in resolved_terms))
        if key not in self._candidate_cache:
            words = [word for word in self._find_free_words(slot) if lemma is None or word.lemma == lemma]
            self._candidate_cache[key] = tuple(_filter_candidates(slot, words, resolved_terms))
        return self._candidate_cache[key]

    def _find_free_words(self, slot: Slot) -> Sequence[LexiconEntry]:
        """Return the words that fit regardless of the other slots; cached."""
        if slot.name not in self._free_word_cache:
            self._free_word_cache[slot.name] = filter_free_words(slot, self.list_vocabulary(slot))
        return self._free_word_cache[slot.name]

    def list_vocabulary(self, slot: Slot) -> tuple[LexiconEntry, ...]:
        """Return the words of a slot's category, or its texts."""
        # Plain texts are wrapped as words, so that sampling need not distinguish them.
        if slot.spec is None:
            return _texts_as_words(slot) if slot.texts else self._collect_row_texts(slot)
        file_words = tuple(word for word in self.file_words if word.category == slot.spec.category)
        return load_lexicon()[slot.spec.category] + file_words

    def _collect_row_texts(self, slot: Slot) -> tuple[LexiconEntry, ...]:
        """Return the texts for a slot in the tables of rows."""
        rows = [row for table in self.paradigm.rows.values() for row in _table_to_rows(table)]
        return tuple(LexiconEntry(TEXT_CATEGORY, row[slot.name]) for row in rows if slot.name in row)

    def _explain_failure(self, fixed: Mapping[str, str]) -> str:
        """Return the error message about the first slot that no word fits."""
        # Words are sampled again, this time with repetition allowed. If that succeeds, only repetition was the problem.
        for _ in range(_MAX_ATTEMPTS):
            fillers: SlotFillers = {}
            for name, slot in self.paradigm.slots.items():
                filler = self._fill_slot(slot, fillers, fixed.get(name), set())
                if filler is None:
                    return f"{slot.where}: {_explain_unfillable_slot(slot, fillers)}"
                fillers[name] = filler
        return (
            f"{self.paradigm.where}: there are too few words to fill every slot with a different one. Relax the slots."
        )


def _explain_unfillable_slot(slot: Slot, fillers: SlotFillers) -> str:
    terms = slot.spec.terms if slot.spec else ()
    requirements = [
        f"{term} ({'|'.join(_resolve_term(term, fillers)) or 'nothing'})" if term.reference else str(term)
        for term in terms
    ]
    return f"no word fits the slot {slot.name!r}: {', '.join(requirements)}. Relax this or an earlier slot."


def filter_free_words(slot: Slot, words: Sequence[LexiconEntry]) -> list[LexiconEntry]:
    """Return the words that satisfy the constraints of a slot which do not refer to other slots."""
    terms = slot.spec.terms if slot.spec else ()
    return [
        word
        for word, _ in _filter_candidates(slot, words, [(term, term.values) for term in terms if not term.reference])
    ]


def _texts_as_words(slot: Slot) -> tuple[LexiconEntry, ...]:
    return tuple(LexiconEntry(TEXT_CATEGORY, text) for text in slot.texts)


def _table_to_rows(table: tuple[FeatureValues, ...]) -> list[dict[str, str]]:
    header, *rows = table
    return [dict(zip(header, row, strict=True)) for row in rows]


def _resolve_term(term: Term, fillers: SlotFillers) -> FeatureValues:
    return resolve_reference(term.reference, fillers) if term.reference else term.values


def resolve_reference(reference: Reference, fillers: SlotFillers) -> FeatureValues:
    """Return the values that the word in another slot has for a feature."""
    return fillers[reference.slot].values(reference.feature)


def _pick_value(values: FeatureValues, random: Random) -> str:
    # A single value consumes no random number, so that the sequence of others does not depend on it.
    return values[0] if len(values) == 1 else random.choice(values)


def _filter_candidates(
    slot: Slot, words: Sequence[LexiconEntry], resolved_terms: Sequence[tuple[Term, FeatureValues]]
) -> list[Candidate]:
    """Return the words that satisfy a slot, each with the inflections that it allows."""
    if slot.spec is None:
        return [(word, ()) for word in words]
    category = slot.spec.category
    constraints = [
        (load_features().get_feature(category, term.left), term.is_equal, values) for term, values in resolved_terms
    ]
    # Features of the word itself first, those that are chosen in a sentence (such as number) afterwards.
    for feature, is_equal, values in constraints:
        if category not in feature.choice_categories:
            words = [
                word for word in words if values_agree(feature.type, word.values(feature.name), values) == is_equal
            ]
    choice_constraints = [constraint for constraint in constraints if category in constraint[0].choice_categories]
    options = [(word, _list_options(word, choice_constraints)) for word in words]
    return [(word, word_options) for word, word_options in options if all(values for _, values in word_options)]


def _list_options(word: LexiconEntry, constraints: Sequence[tuple[Feature, bool, FeatureValues]]) -> InflectionOptions:
    """Return the possible values of each feature that is chosen for a word."""
    # Every noun gets a number, even if its slot does not mention it: determiners and verbs refer to it.
    options: dict[str, FeatureValues] = {"number": list_numbers(word)} if word.category == "noun" else {}
    for feature, is_equal, values in constraints:
        allowed_values = options.get(feature.name, feature.values)
        options[feature.name] = tuple(value for value in allowed_values if (value in values) == is_equal)
    return tuple(options.items())


@dataclass(frozen=True, slots=True)
class GeneratedSentence:
    """A generated sentence, and the ids of the sentences that are worse in a contrast with it."""

    sentence: Sentence
    better_than: Sequence[str] = ()


# So many rejections in succession mean that nearly all sentences of the paradigm have been generated.
_MAX_REJECTED_SENTENCES = 1000
REST_SPLIT = "rest"


@dataclass
class _GenerationState:
    """The seed, and every text that has been generated so far."""

    seed: int
    seen: set[str] = field(default_factory=set)


def generate_sentences(
    files: Iterable[ParadigmFile], *, seed: int, tally: Counter[str] | None = None
) -> Iterator[GeneratedSentence]:
    """Yield the generated sentences of paradigm files; no sentence occurs twice, not even across files.

    Args:
        files: The paradigm files.
        seed: The seed of all random choices.
        tally: A counter of paradigms, sentences, acceptable sentences and contrasts, updated during generation.
    """
    if seed < 0:
        raise SpecError(f"seed is {seed}; expected 0 or more")
    # Shared by all files: a sentence of one suite should not occur in another part of it.
    state = _GenerationState(seed)
    counts: Counter[str] = Counter() if tally is None else tally
    for file in files:
        for rows in _generate_file(file, state):
            counts["paradigms"] += 1
            counts["sentences"] += len(rows)
            counts["acceptable"] += sum(row.sentence.label == 1 for row in rows)
            counts["contrasts"] += sum(len(row.better_than) for row in rows)
            yield from rows


def build_suite(name: str, rows: Iterable[GeneratedSentence]) -> Suite:
    """Return generated sentences as a suite with contrasts."""
    generated = list(rows)
    by_id = {row.sentence.id: row.sentence for row in generated}
    contrasts: list[Contrast] = [
        make_contrast(row.sentence, by_id[worse]) for row in generated for worse in row.better_than
    ]
    # The sentences of one paradigm share their words; what is drawn at random is the paradigm.
    return Suite(name, tuple(by_id.values()), tuple(contrasts), unit="set")


def _generate_file(file: ParadigmFile, state: _GenerationState) -> Iterator[list[GeneratedSentence]]:
    splits = _assign_splits(file, state.seed)
    number = 0
    for paradigm in file.paradigms:
        # A generator per paradigm: editing one does not shift the random numbers of the others. Random hashes a string
        # in the same way in every process, unlike hash().
        sampler = SlotSampler(paradigm, file.words, Random(f"{state.seed}/{file.name}/{paradigm.name}"))
        builder = _SentenceBuilder(file, paradigm)
        for fillers, texts in _generate_distinct(builder, sampler, state):
            number += 1
            split = {"split": splits[number - 1]} if splits else {}
            yield builder.build_sentences(fillers, texts, number, split)


def _assign_splits(file: ParadigmFile, seed: int) -> list[str]:
    """Return the split of every paradigm of a file, shuffled; paradigms without one belong to "rest"."""
    # Whole paradigms are assigned, so that the sentences of a minimal pair never end up in different splits.
    if not file.splits:
        return []
    total = sum(paradigm.count for paradigm in file.paradigms)
    names = [name for name, count in file.splits.items() for _ in range(count)]
    names += [REST_SPLIT] * (total - len(names))
    Random(f"{seed}/{file.name}/splits").shuffle(names)
    return names


def _generate_distinct(
    builder: _SentenceBuilder, sampler: SlotSampler, state: _GenerationState
) -> Iterator[tuple[SlotFillers, list[str]]]:
    """Yield words and the texts generated from them, none of which has been generated before."""
    paradigm = sampler.paradigm
    count = failed_tries = 0
    for fillers in sampler.sample_fillers():
        if paradigm.count and count == paradigm.count:
            return
        texts = builder.build_texts(fillers)
        if not paradigm.repeats and not _are_new(texts, state.seen):
            # A crossed combination comes only once: a sentence that repeats cannot be replaced by another sample.
            failed_tries += 1
            if paradigm.cross or failed_tries == _MAX_REJECTED_SENTENCES:
                raise SuiteError(_explain_exhaustion(paradigm, count, texts))
            continue
        # Recorded after the check, also with repeats, so that later paradigms avoid these sentences.
        state.seen.update(texts)
        failed_tries = 0
        count += 1
        yield fillers, texts


def _are_new(texts: Sequence[str], seen: set[str]) -> bool:
    return len(set(texts)) == len(texts) and seen.isdisjoint(texts)


def _explain_exhaustion(paradigm: Paradigm, count: int, texts: Sequence[str]) -> str:
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        return f"{paradigm.where}: two conditions give the same sentence, {twice!r}. Let a part distinguish them."
    return (
        f"{paradigm.where}: after {count} paradigms every further one repeats a sentence. Lower the count, relax "
        "the slots, or set repeats = true."
    )


class _SentenceBuilder:
    """Fills the templates of one paradigm."""

    def __init__(self, file: ParadigmFile, paradigm: Paradigm) -> None:
        self.file = file
        self.paradigm = paradigm
        # Parts depend on the condition only, so they are expanded once per condition and not for every sentence.
        self.templates = [paradigm.flatten(paradigm.sentence, condition) for condition in paradigm.conditions]
        self.tags = [
            {name: paradigm.flatten(pieces, condition) for name, pieces in paradigm.tags.items()}
            for condition in paradigm.conditions
        ]

    def build_texts(self, fillers: SlotFillers) -> list[str]:
        """Return the text of every condition."""
        return [format_sentence(self._fill_template(pieces, fillers)) for pieces in self.templates]

    def build_sentences(
        self, fillers: SlotFillers, texts: list[str], number: int, split: dict[str, str]
    ) -> list[GeneratedSentence]:
        """Return the sentences of a paradigm, with labels, tags and contrasts."""
        paradigm = self.paradigm
        set_id = f"{self.file.name}/{paradigm.name}/{number}"
        labels = [int(self._is_acceptable(fillers, condition)) for condition in paradigm.conditions]
        ids = [f"{set_id}/{'-'.join(condition.values())}" for condition in paradigm.conditions]
        worse: list[list[str]] = [[] for _ in ids]
        # Pairs of equal labels are no contrasts: neither sentence is better.
        for first, second in paradigm.neighbors:
            if labels[first] != labels[second]:
                better, other = (first, second) if labels[first] else (second, first)
                worse[better].append(ids[other])
        shared = {"paradigm": str(number)} | split | {"set": set_id}
        return [
            GeneratedSentence(
                Sentence(ids[index], text, label=labels[index], tags=self._build_tags(index, fillers) | shared),
                worse[index],
            )
            for index, text in enumerate(texts)
        ]

    # Later tags replace earlier ones: those of the file, of the paradigm, and the values of the factors.
    def _build_tags(self, condition_index: int, fillers: SlotFillers) -> dict[str, str]:
        own = {
            name: tidy_spaces(self._fill_template(pieces, fillers))
            for name, pieces in self.tags[condition_index].items()
        }
        return dict(self.file.tags) | own | dict(self.paradigm.conditions[condition_index])

    def _fill_template(self, pieces: tuple[TemplatePiece, ...], fillers: SlotFillers) -> str:
        return fill_template(pieces, lambda hole: self._inflect_hole(hole, fillers))

    def _inflect_hole(self, hole: Hole, fillers: SlotFillers) -> str:
        filler = fillers[hole.name]
        try:
            if not hole.terms:
                return inflect(filler.word, filler.inflection)
            # Choices in the hole take precedence over those of the slot.
            here = {term.left: _resolve_value(term, fillers) for term in hole.terms}
            return inflect(filler.word, {**filler.inflection, **here})
        except SuiteError as error:
            raise SuiteError(f"{self.paradigm.slots[hole.name].where}: slot {hole.name!r}: {error}") from error

    def _is_acceptable(self, fillers: SlotFillers, condition: Condition) -> bool:
        return any(all(_term_holds(term, fillers, condition) for term in terms) for terms in self.paradigm.acceptable)


def _resolve_value(term: Term, fillers: SlotFillers) -> str:
    values = resolve_reference(term.reference, fillers) if term.reference else term.values
    if not values:
        raise SuiteError(f"{term}: the sampled word has no such feature; require it in its slot")
    return values[0]


def _term_holds(term: Term, fillers: SlotFillers, condition: Condition) -> bool:
    if not term.slot:
        return (condition[term.left] in term.values) == term.is_equal
    filler = fillers[term.slot]
    other = resolve_reference(term.reference, fillers) if term.reference else term.values
    feature = load_features().get_feature(filler.word.category, term.left)
    return values_agree(feature.type, filler.values(term.left), other) == term.is_equal


def check_output_path(path: Path, *, force: bool = False) -> None:
    """Raise an error if a file cannot be written, or would not load as a suite; called before any work is done."""
    if path.suffix != ".jsonl":
        raise SuiteError(f"{path} must end in .jsonl: generated sentences are written as JSON Lines")
    if not path.parent.is_dir():
        raise SuiteError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise SuiteError(f"cannot write {path}: it is a folder. Name a file in it.")
    if path.exists() and not force:
        raise SuiteError(f"{path} exists already. Name another file, or overwrite it with --force.")


def write_sentences(sentences: Iterable[Sentence | GeneratedSentence], path: Path) -> int:
    """Write sentences as a suite, and return their number; the file appears only when it is complete."""
    check_output_path(path, force=True)
    # A killed run would otherwise leave a truncated file that still loads as a suite.
    draft = path.with_name(f".{path.name}.draft")
    count = 0
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as out:
            for row in _build_rows(sentences):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        # Atomic within a folder, which is why the draft lies beside the file and not in a temporary folder.
        draft.replace(path)
    # str(error) would name the draft, of which the user knows nothing.
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return count


def _build_rows(sentences: Iterable[Sentence | GeneratedSentence]) -> Iterator[dict[str, object]]:
    for generated in sentences:
        sentence = generated.sentence if isinstance(generated, GeneratedSentence) else generated
        row: dict[str, object] = {
            "id": sentence.id,
            "text": sentence.text,
            "label": sentence.label,
            "tags": dict(sentence.tags),
        }
        # Plain sentences get no empty column ``better_than``: the reader of suites would take it for contrasts.
        yield row | {"better_than": list(generated.better_than)} if isinstance(generated, GeneratedSentence) else row
