from __future__ import annotations

import gzip
import hashlib
import logging
import lzma
import sys
from pathlib import Path

import pytest

from acceptability.errors import CorpusError, MissingExtra
from acceptability.models.splitting import spans
from acceptability.train.corpus import counts, open_corpus, overlap
from acceptability.train.vocabulary import encode, most_frequent

TEXT = "The cats sleep.\n\nDogs don’t.\n"


def written(path: Path, content: bytes | str = TEXT) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_plain_and_packed_files_are_the_same_text(tmp_path: Path) -> None:
    plain = open_corpus([written(tmp_path / "a.txt")])
    for name, pack in (("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)):
        packed = open_corpus([written(tmp_path / name, pack(TEXT.encode()))])
        assert list(packed.sentences()) == list(plain.sentences()) == ["The cats sleep.", "Dogs don’t."]
        assert counts(packed) == counts(plain)
    found = counts(plain)
    assert (found.sentences, found.words) == (2, 5)
    assert found.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()


def test_zstandard_needs_its_package(tmp_path: Path, monkeypatch) -> None:
    path = written(tmp_path / "a.txt.zst", b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'acceptability\[data\]'"):
        counts(open_corpus([path]))


def test_zstandard_files_are_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    path = written(tmp_path / "a.txt.zst", zstandard.compress(TEXT.encode()))
    assert list(open_corpus([path]).sentences()) == ["The cats sleep.", "Dogs don’t."]
    with pytest.raises(CorpusError, match="not a whole .zst file"):
        counts(open_corpus([written(tmp_path / "b.zst")]))


def test_a_folder_is_its_files_in_order_and_the_order_given_does_not_matter(tmp_path: Path) -> None:
    one, two = written(tmp_path / "1.txt", "b c"), written(tmp_path / "2.txt", "a d\n")
    written(tmp_path / ".hidden", b"\0")
    folder = open_corpus([tmp_path])
    # The last line of a file ends with it, and never runs into the next.
    assert list(folder.sentences()) == ["b c", "a d"]
    assert counts(open_corpus([two, one])) == counts(folder)


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"\xef\xbb\xbfa b\r\nc\r\n")
    assert list(open_corpus([path]).sentences()) == ["a b", "c"]
    assert encode(open_corpus([path]), 0, "spaces", lower=False).vocabulary.words[3:] == ("a", "b", "c")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\n", "is empty"),
        ("a.txt", b"word\nword word\n", "one word only"),
        ("a.txt", b"a b\nc \0 d\n", r"a.txt, line 2: a NUL byte"),
        ("a.txt", b"a b\nc\n\xff d\n", r"a.txt, line 3: bytes that are not UTF-8"),
        ("a.txt.gz", b"a b c\n", "not a whole .gz file"),
        ("a.txt.xz", b"a b c\n", "not a whole .xz file"),
        ("a.txt.gz", gzip.compress(b"a b c\n" * 100, mtime=0)[:-12], "not a whole .gz file"),
        ("a.txt.xz", lzma.compress(b"a b c\n" * 100)[:-12], "not a whole .xz file"),
    ],
)
def test_text_that_is_not_in_order(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        counts(open_corpus([written(tmp_path / name, content)]))


def test_the_line_of_a_bad_byte_counts_all_blocks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.train.corpus._BLOCK", 8)
    with pytest.raises(CorpusError, match="line 21: a NUL"):
        counts(open_corpus([written(tmp_path / "a.txt", b"abc def\n" * 20 + b"\0\n")]))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file or folder .*nothing"):
        open_corpus([tmp_path / "nothing.txt"])
    with pytest.raises(CorpusError, match="has no files"):
        open_corpus([tmp_path])
    with pytest.raises(CorpusError, match="no corpus"):
        open_corpus([])
    path = written(tmp_path / "a.txt")
    with pytest.raises(CorpusError, match="named twice"):
        open_corpus([path, path])


def test_sentences_of_dev_that_stand_in_train_are_counted(tmp_path: Path) -> None:
    train = open_corpus([written(tmp_path / "train.txt", "a b\nc d\ne f\n")])
    dev = open_corpus([written(tmp_path / "dev.txt", "c d\nx y\n c d \ne  f\n")])
    assert overlap(dev, train) == 2


def test_the_most_frequent_words_are_kept_and_ties_go_by_spelling(tmp_path: Path, caplog) -> None:
    corpus = open_corpus([written(tmp_path / "a.txt", "b a c b\na d d\n")])
    found = encode(corpus, 2, "spaces", lower=False)
    assert found.vocabulary.words == ("<unk>", "<s>", "</s>", "a", "b")
    assert found.ids.tolist() == [4, 3, 0, 4, 2, 3, 0, 0, 2]
    assert found.counts.tolist() == [3, 0, 2, 2, 2]
    assert found.oov == 3 / 7
    with caplog.at_level(logging.WARNING):
        assert len(encode(corpus, 9, "spaces", lower=False).vocabulary) == 7
    assert "to have 9 words, and the corpus has 4" in caplog.text


def test_words_are_the_same_in_training_and_scoring(tmp_path: Path) -> None:
    """Whatever a text has in it: capitals that change length, curly apostrophes, rare spaces and line ends."""
    lines = ["İstanbul isn’t far — it’s 3.5 km.", "U.S. cats\u2028sleep\u00a0e.g. on A_B...", "Don't, DON'T!\x0bx\x85y"]
    corpus = open_corpus([written(tmp_path / "a.txt", "\n".join(lines))])
    for rule in ("split", "spaces", "words", "punctuation"):
        for lower in (True, False):
            known = encode(corpus, 0, rule, lower=lower)
            again = [
                number for line in lines for number in (*known.vocabulary.numbers(known.vocabulary.cut(line)[0]), 2)
            ]
            assert known.ids.tolist() == again
            assert 0 not in again


def test_the_rule_split() -> None:
    def words(text: str) -> list[str]:
        return [text[start:end] for start, end in spans(text, "split")]

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


def test_the_edge_of_a_sentence_is_no_word(tmp_path: Path) -> None:
    corpus = open_corpus([written(tmp_path / "a.txt", "<s> a b </s>\n")])
    with pytest.raises(CorpusError, match="as a word"):
        encode(corpus, 0, "spaces", lower=False)
    held = open_corpus([written(tmp_path / "b.txt", "a <unk> b\n")])
    assert encode(held, 0, "spaces", lower=False).ids.tolist() == [3, 0, 4, 2]
    assert most_frequent({"<unk>": 3, "a": 1}, 0, "spaces", lower=False).words[3:] == ("a",)
