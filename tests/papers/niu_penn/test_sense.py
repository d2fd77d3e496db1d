"""Sense and nonsense: which strings of a treebank count as having the same parts of speech."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from acceptability.errors import CorpusError
from acceptability.papers.niu_penn.sense import TreebankToken, find_matches, load_nonsense, make_sense_suite, read_trees
from acceptability.train.corpus import Corpus, open_corpus

FINITE = "VerbForm=Fin"
DOGS = ("the", "DET", 2, "det"), ("dogs", "NOUN", 3, "nsubj"), ("ran", "VERB", 0, "root", FINITE)
PATTERN = ("DET", "NOUN", "VERB")


def written(path: Path, *sentences: list[tuple[str, ...]]) -> Corpus:
    """Write sentences of form, part, head, relation and perhaps features as CoNLL-U."""
    lines = []
    for sentence in sentences:
        for index, (form, part, head, relation, *features) in enumerate(sentence, start=1):
            lines.append(
                "\t".join((str(index), form, "_", part, "_", *(features or "_"), str(head), relation, "_", "_"))
            )
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return open_corpus([path])


def find_strings(path: Path, *sentence: tuple[str, ...], pattern: tuple[str, ...] = PATTERN) -> set[str]:
    return set(find_matches(written(path, list(sentence)), {pattern})[pattern])


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return tmp_path / "bank.conllu"


def test_a_clause_of_the_same_parts_is_found(bank: Path) -> None:
    assert find_strings(bank, *DOGS) == {"the dogs ran"}
    assert find_strings(bank, ("The", *DOGS[0][1:]), *DOGS[1:]) == {"the dogs ran"}
    assert find_strings(bank, *DOGS, ("quickly", "ADV", 3, "advmod"), (".", "PUNCT", 3, "punct")) == {"the dogs ran"}


@pytest.mark.parametrize(
    "sentence",
    [
        [*DOGS[:2], ("running", "VERB", 0, "root", "VerbForm=Ger")],
        [*DOGS, ("races", "NOUN", 3, "obj")],
        [*DOGS, ("off", "ADP", 3, "compound:prt")],
        [DOGS[0], ("dogs", "NOUN", 3, "obl"), DOGS[2]],
        [("the", "DET", 3, "det"), ("old", "ADJ", 3, "amod"), ("dogs", "NOUN", 4, "nsubj"), DOGS[2]],
        [*DOGS[:2], ("ran", "VERB", 0, "root", f"{FINITE}|Typo=Yes")],
        [DOGS[0], ("Dogs", *DOGS[1][1:]), DOGS[2]],
        [DOGS[0], ("dog-s", *DOGS[1][1:]), DOGS[2]],
        [DOGS[0], ("dogs", "NOUN", 0, "root"), ("ran", "VERB", 2, "acl", FINITE)],
    ],
    ids=[
        "not finite",
        "object cut off",
        "particle cut off",
        "no subject",
        "other parts",
        "slip",
        "name",
        "mark",
        "two",
    ],
)
def test_strings_that_are_not_a_clause_are_left_out(sentence: list[tuple[str, ...]], bank: Path) -> None:
    assert find_strings(bank, *sentence) == set()


def test_a_phrase_is_not_cut(bank: Path) -> None:
    sentence = ("the", "DET", 3, "det"), ("old", "ADJ", 3, "amod"), ("dogs", "NOUN", 4, "nsubj"), DOGS[2]
    assert find_strings(bank, *sentence, pattern=("ADJ", "NOUN", "VERB")) == set()
    assert find_strings(bank, *sentence, pattern=("DET", "ADJ", "NOUN", "VERB")) == {"the old dogs ran"}


def test_a_finite_auxiliary_is_enough(bank: Path) -> None:
    sentence = (
        ("dogs", "NOUN", 3, "nsubj"),
        ("are", "AUX", 3, "aux", FINITE),
        ("running", "VERB", 0, "root", "VerbForm=Part"),
    )
    assert find_strings(bank, *sentence, pattern=("NOUN", "AUX", "VERB")) == {"dogs are running"}


def test_nonsense_has_a_part_of_speech_for_each_word() -> None:
    sentences = load_nonsense()
    assert (
        len(sentences)
        == len({nonsense.text for nonsense in sentences})
        == len({nonsense.parts_of_speech for nonsense in sentences})
        == 27
    )
    assert sentences[0].text == "colorless green ideas sleep furiously"
    for nonsense in sentences:
        assert len(nonsense.text.split()) == len(nonsense.parts_of_speech)
        assert nonsense.text == nonsense.text.lower()
        assert {"NOUN", "VERB"} <= set(nonsense.parts_of_speech)


def test_both_sets_have_the_same_lengths_and_the_seed_decides(bank: Path) -> None:
    strings = [
        [
            ("a", "DET", 2, "det"),
            (noun, "NOUN", 4, "nsubj"),
            ("may", "AUX", 4, "aux", FINITE),
            ("go", "VERB", 0, "root"),
        ]
        for noun in ("cat", "dog", "cow", "hen", "fox")
    ]
    corpus = written(bank, *strings)
    first, second = make_sense_suite(corpus).sentences
    assert (first.text, first.label, second.label) == ("a shadow will sneeze", 0, 1)
    assert len(second.text.split()) == 4
    assert make_sense_suite(corpus) == make_sense_suite(corpus)
    assert len({make_sense_suite(corpus, seed).sentences[1].text for seed in range(20)}) > 1


def test_a_treebank_without_a_match_is_an_error(bank: Path) -> None:
    with pytest.raises(CorpusError, match=r"bank\.conllu: no string has the parts of speech"):
        make_sense_suite(written(bank, [("go", "VERB", 0, "root")]))


def test_treebanks_may_be_compressed_and_have_contractions(tmp_path: Path) -> None:
    rows = ["# text = don't", "1-2\tdon't" + "\t_" * 8, "1\tdo\t_\tAUX\t_\t_\t0\troot:x\t_\t_"]
    rows += ["2\tn't\t_\tPART\t_\t_\t1\tadvmod\t_\t_", "2.1\tgo" + "\t_" * 8]
    path = tmp_path / "a.conllu.xz"
    path.write_bytes(lzma.compress("\n".join(rows).encode()))
    assert list(read_trees(open_corpus([path]))) == [
        (TreebankToken("do", "AUX", -1, "root", "_"), TreebankToken("n't", "PART", 0, "advmod", "_"))
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("1\tgo\n", "line 1: 2 columns; CoNLL-U has 10"),
        ("1\tgo\t_\tVERB\t_\t_\t_\troot\t_\t_\n", "line 1: the head is '_'"),
        ("1\tgo\t_\tVERB\t_\t_\t1\troot\t_\t_\n", "make no tree"),
        ("1\tgo\t_\tVERB\t_\t_\t7\troot\t_\t_\n", "make no tree"),
    ],
)
def test_a_malformed_treebank_is_an_error(content: str, problem: str, bank: Path) -> None:
    bank.write_text(content)
    with pytest.raises(CorpusError, match=problem):
        list(read_trees(open_corpus([bank])))


def test_english_ewt_has_strings_for_all_but_chomskys_sentence(data: Path) -> None:
    files = sorted((data.parent / "corpus" / "ud").glob("*.conllu.xz"))
    if len(files) < 3:
        pytest.skip("UD English EWT is not here: it lies in corpus/ud beside the published data")
    corpus = open_corpus(files)
    strings = find_matches(corpus, {nonsense.parts_of_speech for nonsense in load_nonsense()})
    assert [nonsense.text for nonsense in load_nonsense() if not strings[nonsense.parts_of_speech]] == [
        "colorless green ideas sleep furiously"
    ]
    assert len(strings["DET", "NOUN", "AUX", "VERB"]) == 106
    assert len(make_sense_suite(corpus).sentences) == 52
