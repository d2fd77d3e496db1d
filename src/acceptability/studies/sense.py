"""Sense against nonsense: sentences without sense, and strings of a treebank that have the same parts of speech.

Niu and Penn (2020), section 5.6, set 27 nonsense sentences against 36 strings of the BNC with the same parts of speech
that cross no boundary of a clause; neither set is published. The sentences here are ours (``nonsense.toml``), and
the strings come from a treebank of Universal Dependencies, one for each sentence, so that lengths are the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from acceptability.errors import CorpusError
from acceptability.studies.treebank import Token, trees
from acceptability.train.corpus import Corpus
from acceptability.types import Sentence, Suite

SEED = 0
_CLAUSES = {"root", "csubj", "ccomp", "xcomp", "advcl", "acl", "parataxis"}
_COMPLEMENTS = {"nsubj", "obj", "iobj", "ccomp", "xcomp", "compound"}

Parts = tuple[str, ...]


@dataclass(frozen=True)
class Nonsense:
    """A grammatical sentence without sense, and its parts of speech."""

    text: str
    parts: Parts


def nonsense() -> tuple[Nonsense, ...]:
    """Return the sentences without sense."""
    text = files("acceptability.studies").joinpath("nonsense.toml").read_text(encoding="utf-8")
    return tuple(Nonsense(each["text"], tuple(each["parts"].split())) for each in tomllib.loads(text)["sentence"])


def sense_suite(treebank: Corpus, seed: int = SEED) -> Suite:
    """Return nonsense (label 0), each with a string of the same parts of speech (label 1), drawn at random.

    A sentence whose parts of speech the treebank has nowhere is left out.
    """
    absurd = nonsense()
    found = matches(treebank, {each.parts for each in absurd})
    draw = np.random.default_rng(seed)
    pairs = [(each.text, sorted(found[each.parts])) for each in absurd if found[each.parts]]
    if not pairs:
        names = ", ".join(path.name for path in treebank.files)
        raise CorpusError(f"{names}: no string has the parts of speech of a nonsense sentence. Give a larger treebank.")
    chosen = [(text, strings[int(draw.integers(len(strings)))]) for text, strings in pairs]
    return Suite("sense and nonsense", tuple(each for place, pair in enumerate(chosen) for each in _both(place, *pair)))


def _both(place: int, absurd: str, sensible: str) -> Iterator[Sentence]:
    yield Sentence(f"nonsense/{place}", absurd, label=0)
    yield Sentence(f"sense/{place}", sensible, label=1)


def matches(treebank: Corpus, patterns: set[Parts]) -> Mapping[Parts, set[str]]:
    """Return the strings of a treebank with each of some sequences of parts of speech, in lower case.

    A string lies within one clause and has its verb, which is finite or has an auxiliary that is, the verb's subject,
    and all objects, complements and particles; only what else depends on the verb may lie outside. All words are of
    letters, in lower case save the first of a sentence, and none is marked as a slip: neither names nor headlines.
    """
    found: dict[Parts, set[str]] = {pattern: set() for pattern in patterns}
    lengths = sorted({len(pattern) for pattern in patterns})
    for tree in trees(treebank):
        parts, clauses = tuple(token.part for token in tree), _clauses(tree)
        for length in lengths:
            for start in range(len(tree) - length + 1):
                pattern = parts[start : start + length]
                if pattern in found and _is_clause(tree, clauses, start, start + length):
                    found[pattern].add(" ".join(token.form for token in tree[start : start + length]).lower())
    return found


def _clauses(tree: Sequence[Token]) -> list[int]:
    """Return the place of the head of each word's own clause."""
    return [_clause(tree, place) for place in range(len(tree))]


def _clause(tree: Sequence[Token], place: int) -> int:
    token = tree[place]
    if token.head < 0 or token.relation in _CLAUSES or (token.relation == "conj" and token.part == "VERB"):
        return place
    return _clause(tree, token.head)


def _is_clause(tree: Sequence[Token], clauses: Sequence[int], start: int, end: int) -> bool:
    """Tell whether some words make a clause by themselves: one verb, with what it cannot be without; whole phrases."""
    verb, inside, words = clauses[start], range(start, end), tree[start:end]
    if verb not in inside or tree[verb].part != "VERB" or len(set(clauses[start:end])) > 1:
        return False
    if any(tree[place].head not in inside for place in inside if place != verb):
        return False
    outside = [token for place, token in enumerate(tree) if token.head in inside and place not in inside]
    if any(token.head != verb or token.relation in _COMPLEMENTS for token in outside):
        return False
    is_finite = any("VerbForm=Fin" in token.features for token in words)
    has_subject = any(token.head == verb and token.relation == "nsubj" for token in words)
    return is_finite and has_subject and all(map(_is_plain, words, inside))


def _is_plain(token: Token, place: int) -> bool:
    rest = token.form[1:] if place == 0 else token.form
    return token.form.isalpha() and rest == rest.lower() and "Typo=Yes" not in token.features
