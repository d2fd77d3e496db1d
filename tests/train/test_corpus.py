from __future__ import annotations

import gzip
import hashlib
import logging
import lzma
import sys
from pathlib import Path

import pytest

from acceptability.errors import CorpusError, MissingExtra
from acceptability.text.words import find_word_spans
from acceptability.train.corpus import build_vocabulary, count_corpus, count_overlap, encode_corpus, open_corpus

TEXT = "The cats sleep.\n\nDogs don’t.\n"


def written(path: Path, content: bytes | str = TEXT) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_plain_and_compressed_files_are_the_same_text(tmp_path: Path) -> None:
    plain = open_corpus([written(tmp_path / "a.txt")])
    for name, pack in (("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)):
        packed = open_corpus([written(tmp_path / name, pack(TEXT.encode()))])
        assert list(packed.sentences()) == list(plain.sentences()) == ["The cats sleep.", "Dogs don’t."]
        assert count_corpus(packed) == count_corpus(plain)
    counts = count_corpus(plain)
    assert (counts.sentences, counts.words) == (2, 5)
    assert counts.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()


def test_zstandard_needs_its_package(tmp_path: Path, monkeypatch) -> None:
    path = written(tmp_path / "a.txt.zst", b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'acceptability\[data\]'"):
        count_corpus(open_corpus([path]))


def test_zstandard_files_are_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    path = written(tmp_path / "a.txt.zst", zstandard.compress(TEXT.encode()))
    assert list(open_corpus([path]).sentences()) == ["The cats sleep.", "Dogs don’t."]
    with pytest.raises(CorpusError, match="not a complete .zst file"):
        count_corpus(open_corpus([written(tmp_path / "b.zst")]))


def test_a_folder_is_its_files_in_order_and_the_order_given_does_not_matter(tmp_path: Path) -> None:
    first, second = written(tmp_path / "1.txt", "b c"), written(tmp_path / "2.txt", "a d\n")
    written(tmp_path / ".hidden", b"\0")
    folder = open_corpus([tmp_path])
    # The last line of a file ends with it, and never runs into the next.
    assert list(folder.sentences()) == ["b c", "a d"]
    assert count_corpus(open_corpus([second, first])) == count_corpus(folder)


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"\xef\xbb\xbfa b\r\nc\r\n")
    assert list(open_corpus([path]).sentences()) == ["a b", "c"]
    assert encode_corpus(open_corpus([path]), 0, "spaces", lower=False).vocabulary.words[3:] == ("a", "b", "c")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\n", "is empty"),
        ("a.txt", b"word\nword word\n", "one distinct word only"),
        ("a.txt", b"a b\nc \0 d\n", r"a.txt, line 2: a NUL byte"),
        ("a.txt", b"a b\nc\n\xff d\n", r"a.txt, line 3: bytes that are not UTF-8"),
        ("a.txt.gz", b"a b c\n", "not a complete .gz file"),
        ("a.txt.xz", b"a b c\n", "not a complete .xz file"),
        ("a.txt.gz", gzip.compress(b"a b c\n" * 100, mtime=0)[:-12], "not a complete .gz file"),
        ("a.txt.xz", lzma.compress(b"a b c\n" * 100)[:-12], "not a complete .xz file"),
    ],
)
def test_invalid_text_is_an_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        count_corpus(open_corpus([written(tmp_path / name, content)]))


def test_the_line_of_a_bad_byte_counts_all_blocks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.train.corpus._BLOCK", 8)
    with pytest.raises(CorpusError, match="line 21: a NUL"):
        count_corpus(open_corpus([written(tmp_path / "a.txt", b"abc def\n" * 20 + b"\0\n")]))


def test_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file or folder .*nothing"):
        open_corpus([tmp_path / "nothing.txt"])
    with pytest.raises(CorpusError, match="has no files"):
        open_corpus([tmp_path])
    with pytest.raises(CorpusError, match="no corpus"):
        open_corpus([])
    path = written(tmp_path / "a.txt")
    with pytest.raises(CorpusError, match="given twice"):
        open_corpus([path, path])


def test_dev_sentences_in_the_training_text_are_counted(tmp_path: Path) -> None:
    train = open_corpus([written(tmp_path / "train.txt", "a b\nc d\ne f\n")])
    dev = open_corpus([written(tmp_path / "dev.txt", "c d\nx y\n c d \ne  f\n")])
    assert count_overlap(dev, train) == 2


def test_the_most_frequent_words_are_kept_and_ties_go_by_spelling(tmp_path: Path, caplog) -> None:
    corpus = open_corpus([written(tmp_path / "a.txt", "b a c b\na d d\n")])
    encoded = encode_corpus(corpus, 2, "spaces", lower=False)
    assert encoded.vocabulary.words == ("<unk>", "<s>", "</s>", "a", "b")
    assert encoded.ids.tolist() == [4, 3, 0, 4, 2, 3, 0, 0, 2]
    assert encoded.counts.tolist() == [3, 0, 2, 2, 2]
    assert encoded.oov_rate == 3 / 7
    with caplog.at_level(logging.WARNING):
        assert len(encode_corpus(corpus, 9, "spaces", lower=False).vocabulary) == 7
    assert "the vocabulary has 4 words, not 9" in caplog.text


def test_words_are_the_same_in_training_and_scoring(tmp_path: Path) -> None:
    """Whatever a text has in it: capitals that change length, curly apostrophes, rare spaces and line ends."""
    lines = ["İstanbul isn’t far — it’s 3.5 km.", "U.S. cats\u2028sleep\u00a0e.g. on A_B...", "Don't, DON'T!\x0bx\x85y"]
    corpus = open_corpus([written(tmp_path / "a.txt", "\n".join(lines))])
    for rule in ("split", "spaces", "words", "punctuation"):
        for lower in (True, False):
            known = encode_corpus(corpus, 0, rule, lower=lower)
            again = [
                number for line in lines for number in (*known.vocabulary.to_ids(known.vocabulary.tokenize(line)[0]), 2)
            ]
            assert known.ids.tolist() == again
            assert 0 not in again


def test_the_rule_split() -> None:
    def words(text: str) -> list[str]:
        return [text[start:end] for start, end in find_word_spans(text, "split")]

    assert words("Cats sleep.") == ["Cats", "sleep", "."]
    assert words("I can't, she's") == ["I", "ca", "n't", ",", "she", "'s"]
    assert words('"Well-known" (U.S.) 1,000.5%...') == [
        '"',
        "Well",
        "-",
        "known",
        '"',
        "(",
        "U.S.",
        ")",
        "1,000.5",
        "%",
        "...",
    ]
    assert words("the dogs' bones") == ["the", "dogs", "'", "bones"]
    assert words("Robert <unk> sang <unknown>.") == ["Robert", "<unk>", "sang", "<", "unknown", ">", "."]


def test_a_sentence_marker_in_the_corpus_is_an_error(tmp_path: Path) -> None:
    corpus = open_corpus([written(tmp_path / "a.txt", "<s> a b </s>\n")])
    with pytest.raises(CorpusError, match="as a word"):
        encode_corpus(corpus, 0, "spaces", lower=False)
    held = open_corpus([written(tmp_path / "b.txt", "a <unk> b\n")])
    assert encode_corpus(held, 0, "spaces", lower=False).ids.tolist() == [3, 0, 4, 2]
    assert build_vocabulary({"<unk>": 3, "a": 1}, 0, "spaces", lower=False).words[3:] == ("a",)
