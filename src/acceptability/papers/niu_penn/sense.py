"""Table 6 of Niu and Penn (2020) for a model of the user's own, and Chomsky's sentence against its reversal.

Table 6 correlates log-probabilities with sense (1) and nonsense (0). In section 5.6 the paper compares 27 nonsense
sentences with 36 strings of the BNC that have the same parts of speech and cross no clause boundary; neither set is
published. The nonsense sentences here are ours (``nonsense.toml``). The strings that make sense come from a treebank of
Universal Dependencies (CoNLL-U), one for each nonsense sentence, so that lengths are the same. A second row uses the
authors' judgements of the permutations of "colourless green ideas sleep furiously": grammatical (1) or not (0), all
without sense.

Section 5 quotes Pereira (2000), who finds Chomsky's sentence (1957) about 200,000 times as probable as its reversal
under an aggregate Markov model of 16 classes, trained on newspaper text. ``compute_ratio`` gives that ratio for any
language model.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from acceptability.api.interface.arguments import as_model
from acceptability.api.scoring import Judgement, judge
from acceptability.errors import CorpusError, ModelError, Undefined
from acceptability.papers.cells import Cell, CellKey, PublishedValues
from acceptability.papers.niu_penn.pbc_tables import SCALES, NumberOrReason, ScoresByNorm, compute_pbc, make_model_cell
from acceptability.protocols import Model
from acceptability.suites import load_suite
from acceptability.train.corpus import Corpus
from acceptability.train.perplexity import keep_unknown_symbol
from acceptability.types import Sentence, Suite, TokenScores

PEREIRA_KEY: CellKey = ("Section 5", "Pereira", "Colorless green ideas … against its reversal, times as probable")
NORMS = ("Raw", "SLOR")
"""The normalisations of Table 6; SLOR only if there are unigrams."""

_PERMUTATIONS_COLUMN = "permutations of colourless green ideas sleep furiously, grammatical against not"
SENSE_COLUMN = "our sense against our nonsense"
_TREEBANK_NEEDED = (
    "needs a treebank of English to draw strings that make sense from: add --corpus FILE.conllu (or .conllu.xz)"
)

SEED = 0
"""The seed of the draw of strings from the treebank."""

# In Universal Dependencies these relations start a clause of their own. Conjoined verbs do too, but ``conj`` also links
# nouns: see ``_find_clause_head``.
_CLAUSE_RELATIONS = {"root", "csubj", "ccomp", "xcomp", "advcl", "acl", "parataxis"}
# Without these the verb's clause is incomplete; compound is the particle of English phrasal verbs.
_COMPLEMENT_RELATIONS = {"nsubj", "obj", "iobj", "ccomp", "xcomp", "compound"}

PartsOfSpeech = tuple[str, ...]
"""The universal parts of speech of a string, one for each word."""

SENTENCE = "Colorless green ideas sleep furiously."
REVERSAL = "Furiously sleep ideas green colorless."
PRINTED_RATIO = 200_000
"""The number that Niu and Penn (2020) quote from Pereira (2000): "roughly 200 000 times greater"."""

_CONLLU_COLUMNS = 10


def load_permutations() -> Suite:
    """Return the permutations that the authors judged: 28 grammatical ones and 88 others."""
    decided = tuple(sentence for sentence in load_suite("niu_penn2020").sentences if sentence.label is not None)
    return Suite("niu_penn2020, decided", decided)


def compute_table_6(
    model: str, permuted: tuple[Suite, ScoresByNorm], sense: tuple[Suite, ScoresByNorm] | None
) -> Iterator[Cell]:
    """Yield the correlations with sense, and with the grammaticality of nonsense.

    Args:
        model: The name of the model.
        permuted: The permutations, and their scores by normalisation.
        sense: Sense and nonsense with their scores; None if no treebank was given.
    """
    yield from _compute_cells(
        model, _PERMUTATIONS_COLUMN, *permuted, "no sense in either: another question than the paper's"
    )
    if sense is None:
        yield from (
            make_model_cell("Table 6", f"{model}, {norm}", SENSE_COLUMN, (None, _TREEBANK_NEEDED), model)
            for norm in permuted[1]
        )
        return
    # Half of the suite is nonsense; sentences for which the treebank has no string are left out.
    n_used, n_nonsense = len(sense[0].sentences) // 2, len(load_nonsense())
    note = f"each with a string of the treebank of the same parts of speech, drawn with seed {SEED}; not the paper's"
    yield from _compute_cells(model, SENSE_COLUMN, *sense, f"{n_used} of our {n_nonsense} nonsense sentences, {note}")


def _compute_cells(model: str, column: str, suite: Suite, scores_by_norm: ScoresByNorm, note: str) -> Iterator[Cell]:
    for norm, scores in scores_by_norm.items():
        number = compute_pbc(suite.sentences, scores, SCALES["LOG"])
        yield make_model_cell("Table 6", f"{model}, {norm}", column, number, model, note, *scores.notes)


@dataclass(frozen=True)
class NonsenseSentence:
    """A grammatical sentence without sense, and its parts of speech."""

    text: str
    parts_of_speech: PartsOfSpeech


def load_nonsense() -> tuple[NonsenseSentence, ...]:
    """Return the nonsense sentences."""
    text = files("acceptability.papers.niu_penn").joinpath("nonsense.toml").read_text(encoding="utf-8")
    return tuple(
        NonsenseSentence(entry["text"], tuple(entry["parts"].split())) for entry in tomllib.loads(text)["sentence"]
    )


def make_sense_suite(treebank: Corpus, seed: int = SEED) -> Suite:
    """Return nonsense sentences (label 0), each with a string of the same parts of speech (label 1), drawn at random.

    A nonsense sentence is left out if no string of the treebank has its parts of speech.

    Args:
        treebank: CoNLL-U files.
        seed: Seeds the draw.
    """
    nonsense_sentences = load_nonsense()
    strings_by_pattern = find_matches(treebank, {nonsense.parts_of_speech for nonsense in nonsense_sentences})
    rng = np.random.default_rng(seed)
    # Sorted, because the order of a set of strings differs between runs, and the draw is by index.
    pairs = [
        (nonsense.text, sorted(strings_by_pattern[nonsense.parts_of_speech]))
        for nonsense in nonsense_sentences
        if strings_by_pattern[nonsense.parts_of_speech]
    ]
    if not pairs:
        names = ", ".join(path.name for path in treebank.files)
        raise CorpusError(f"{names}: no string has the parts of speech of a nonsense sentence. Give a larger treebank.")
    drawn_pairs = [(text, strings[int(rng.integers(len(strings)))]) for text, strings in pairs]
    return Suite(
        "sense and nonsense",
        tuple(sentence for index, pair in enumerate(drawn_pairs) for sentence in _make_sentence_pair(index, *pair)),
    )


def _make_sentence_pair(index: int, absurd: str, sensible: str) -> Iterator[Sentence]:
    yield Sentence(f"nonsense/{index}", absurd, label=0)
    yield Sentence(f"sense/{index}", sensible, label=1)


def find_matches(treebank: Corpus, patterns: set[PartsOfSpeech]) -> Mapping[PartsOfSpeech, set[str]]:
    """Return the strings of a treebank that have one of some sequences of parts of speech, in lower case, by sequence.

    A string must be a complete clause or part of one: it has the verb, finite or with a finite auxiliary, its subject,
    and all its objects, complements and particles; only adjuncts of the verb may be outside. All its words consist of
    letters, in lower case except for the first of a sentence, and none is marked as a typo. That excludes names and
    headlines.

    Args:
        treebank: CoNLL-U files.
        patterns: The sequences of parts of speech.
    """
    strings_by_pattern: dict[PartsOfSpeech, set[str]] = {pattern: set() for pattern in patterns}
    lengths = sorted({len(pattern) for pattern in patterns})
    for tree in read_trees(treebank):
        parts, clauses = tuple(token.upos for token in tree), _find_clause_heads(tree)
        # The pattern of parts of speech is compared first: it is a set lookup, and few windows pass it.
        for length in lengths:
            for start in range(len(tree) - length + 1):
                pattern = parts[start : start + length]
                if pattern in strings_by_pattern and _is_clause(tree, clauses, start, start + length):
                    strings_by_pattern[pattern].add(
                        " ".join(token.form for token in tree[start : start + length]).lower()
                    )
    return strings_by_pattern


def _find_clause_heads(tree: Sequence[TreebankToken]) -> list[int]:
    """Return the index of the head of each word's own clause."""
    return [_find_clause_head(tree, token_index) for token_index in range(len(tree))]


def _find_clause_head(tree: Sequence[TreebankToken], token_index: int) -> int:
    token = tree[token_index]
    if token.head < 0 or token.deprel in _CLAUSE_RELATIONS or (token.deprel == "conj" and token.upos == "VERB"):
        return token_index
    return _find_clause_head(tree, token.head)


def _is_clause(tree: Sequence[TreebankToken], clauses: Sequence[int], start: int, end: int) -> bool:
    """Return whether some words are a clause: one verb with its complements, in whole phrases."""
    verb, inside, words = clauses[start], range(start, end), tree[start:end]
    if verb not in inside or tree[verb].upos != "VERB" or len(set(clauses[start:end])) > 1:
        return False
    # A word whose head lies outside belongs to a phrase that the span cuts.
    if any(tree[i].head not in inside for i in inside if i != verb):
        return False
    # So does a word outside whose head lies inside. Only adjuncts of the verb can be missing from a clause.
    outside = [token for i, token in enumerate(tree) if token.head in inside and i not in inside]
    if any(token.head != verb or token.deprel in _COMPLEMENT_RELATIONS for token in outside):
        return False
    is_finite = any("VerbForm=Fin" in token.feats for token in words)
    has_subject = any(token.head == verb and token.deprel == "nsubj" for token in words)
    return is_finite and has_subject and all(map(_is_lowercase_word, words, inside))


def _is_lowercase_word(token: TreebankToken, token_index: int) -> bool:
    rest = token.form[1:] if token_index == 0 else token.form
    return token.form.isalpha() and rest == rest.lower() and "Typo=Yes" not in token.feats


@dataclass(frozen=True, slots=True)
class TreebankToken:
    """A word of a dependency tree.

    Args:
        form: The word.
        upos: Its universal part of speech, such as NOUN.
        head: The index of the word that it depends on, from 0; -1 for the root.
        deprel: The relation to its head, without the subtype after a colon.
        feats: Its morphological features, such as ``Number=Sing|Person=3``.
    """

    form: str
    upos: str
    head: int
    deprel: str
    feats: str


def is_treebank(path: Path) -> bool:
    """Return whether a file is CoNLL-U, by its name.

    >>> is_treebank(Path("en-ud-dev.conllu.xz")), is_treebank(Path("dev.txt.xz"))
    (True, False)
    """
    return ".conllu" in path.suffixes


def read_trees(corpus: Corpus) -> Iterator[tuple[TreebankToken, ...]]:
    """Yield the words of each sentence of a treebank."""
    for path in corpus.files:
        tokens: list[TreebankToken] = []
        for number, line in enumerate(_read_lines(path), start=1):
            if not line.strip():
                yield from _yield_tree(tokens, path, number)
                tokens = []
            elif not line.startswith("#") and (token := _parse_token(line, path, number)):
                tokens.append(token)
        # The blank line after the last sentence may be missing.
        yield from _yield_tree(tokens, path, number)


def _read_lines(path: Path) -> Iterator[str]:
    for block in Corpus((path,)).blocks():
        yield from block.decode().removesuffix("\n").split("\n")


def _parse_token(line: str, path: Path, number: int) -> TreebankToken | None:
    """Return the word of a line; None for lines that are not words of the basic tree."""
    cells = line.rstrip("\r").split("\t")
    if len(cells) != _CONLLU_COLUMNS:
        expected = f"CoNLL-U has {_CONLLU_COLUMNS}, separated by tabs"
        raise CorpusError(f"{path}, line {number}: {len(cells)} columns; {expected}")
    # Contractions have a line of their own (id 3-4) before those of their words, elided words an id like 5.1.
    if not cells[0].isdecimal():
        return None
    if not cells[6].isdecimal():
        raise CorpusError(f"{path}, line {number}: the head is {cells[6]!r}; expected the number of a word, or 0")
    return TreebankToken(cells[1], cells[3], int(cells[6]) - 1, cells[7].partition(":")[0], cells[5])


def _yield_tree(tokens: list[TreebankToken], path: Path, number: int) -> Iterator[tuple[TreebankToken, ...]]:
    """Yield a sentence unless it is empty; every word must be connected to the root."""
    if not tokens:
        return
    # A cycle among the heads would make ``_find_clause_head`` recurse without end.
    for token_index in range(len(tokens)):
        steps, node = 0, token_index
        while node >= 0:
            steps, node = steps + 1, tokens[node].head if tokens[node].head < len(tokens) else len(tokens)
            if steps > len(tokens) or node == len(tokens):
                raise CorpusError(f"{path}, before line {number}: the heads of this sentence make no tree")
    yield tuple(tokens)


@dataclass(frozen=True)
class ProbabilityRatio:
    """The ratio of the probabilities of two sentences.

    Args:
        log10: The base-10 logarithm of the ratio; above 0 if the first sentence is the more probable one.
        note: A caveat: the words that the model does not know.
    """

    log10: float
    note: str = ""

    @property
    def times(self) -> float:
        """The ratio itself.

        >>> ProbabilityRatio(log10=2.0).times
        100.0
        """
        # The largest float is about 1.8e308; 10.0**309 raises an OverflowError without a word on the cause.
        if self.log10 > 308:
            raise Undefined(f"the ratio is 10 to the power of {self.log10:.1f}, which is too large for a number")
        return float(10.0**self.log10)


def compute_ratio(model: str | Model, *, lower: bool = False) -> ProbabilityRatio:
    """Return how many times as probable Chomsky's sentence is as its reversal.

    Args:
        model: A language model.
        lower: Whether to score both in lower case, so that they have the same words: as written, one begins with
            ``Colorless`` and the other with ``Furiously``.
    """
    _, loaded_model = as_model(model)
    texts = [text.lower() if lower else text for text in (SENTENCE, REVERSAL)]
    sentence, reversal = judge(texts, model=loaded_model, reduce="lp")
    return ProbabilityRatio(
        (sentence.score - reversal.score) / math.log(10), _note_unknown_words(loaded_model, (sentence, reversal))
    )


def _note_unknown_words(model: Model, judgements: tuple[Judgement, Judgement]) -> str:
    """Return a note on the words that are not in the model's vocabulary; empty if the model has no vocabulary."""
    is_unknown = model.is_unknown
    if is_unknown is None:
        return ""
    words = {
        token: None
        for judgement in judgements
        if isinstance(judgement.output, TokenScores)
        for token in judgement.output.tokens
        if is_unknown(token)
    }
    return f"the model does not know {', '.join(words)}" if words else ""


def compute_colorless_cell(model: str, values: PublishedValues) -> Cell:
    """Return the ratio for Chomsky's sentence and its reversal, beside the number that the paper quotes."""
    # Set directly, because the number quoted is of another model: ``make_cell`` would compare the two.
    cell = make_model_cell(PEREIRA_KEY[0], model, PEREIRA_KEY[2], _compute_times(model), model)
    return replace(cell, paper=values[PEREIRA_KEY].value)


def _compute_times(model: str) -> NumberOrReason:
    try:
        # As in the other tables. The spelling of both sentences' words is the same, and would only add rounding.
        result = compute_ratio(keep_unknown_symbol(model), lower=True)
        times = result.times
    except (ModelError, Undefined) as error:
        return None, str(error)
    power = f"10 to the power of {result.log10:.2f}; both sentences in lower case"
    other = "the paper's number is of another model and text, so that nothing is compared"
    return times, "; ".join(filter(None, (power, other, result.note)))
