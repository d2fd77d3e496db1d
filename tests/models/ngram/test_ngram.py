from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from acceptability import load_model
from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models import list_named_models
from acceptability.models.ngram.arpa import LN10, Arpa
from acceptability.types import Query
from tiny import TEXTS, arpa_text


def run_model(model, text: str, **kwargs: object):
    return model.run(model.encode([Query(text, **kwargs)]))[0]


def test_probabilities_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.arpa"
    path.write_text(
        "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-99\t<s>\t-0.3\n-1.0\tthe\t-0.2\n-2.0\tcat\n-0.5\t</s>\n\n"
        "\\2-grams:\n-0.4\t<s> the\n-0.6\tthe cat\n\n\\end\\\n"
    )
    model = load_model(f"ngram:{path}(eos=True)")
    found = run_model(model, "the cat")
    # p(the|<s>) and p(cat|the) are seen; </s> after cat backs off without a weight.
    assert found.logprobs.tolist() == pytest.approx([-0.4 * LN10, -0.6 * LN10, -0.5 * LN10], rel=1e-6)
    found = run_model(model, "cat the")
    # Both back off: from <s> with its weight -0.3, from cat with none.
    assert found.logprobs.tolist()[:2] == pytest.approx([-2.3 * LN10, -1.0 * LN10], rel=1e-6)


def test_an_unknown_word_has_its_policy(tmp_path: Path) -> None:
    path = tmp_path / "closed.arpa"
    path.write_text(arpa_text(["the cat sleeps"], unknown=False))
    words = Arpa(path).vocabulary_size
    uniform = run_model(load_model(f"ngram:{path}"), "the zebra sleeps")
    assert uniform.logprobs[1] == pytest.approx(-math.log(words))
    number = load_model(f"ngram:{path}(unknown=-9)")
    assert run_model(number, "the zebra sleeps").logprobs[1] == -9
    assert "unknown=-9.0" in number.signature
    opened = tmp_path / "open.arpa"
    opened.write_text(arpa_text(["the cat sleeps"]))
    found = run_model(load_model(f"ngram:{opened}(unknown='<unk>')"), "the zebra sleeps")
    assert found.logprobs[1] == pytest.approx(math.log(0.5) + Arpa(opened).logprobs[("<unk>",)], rel=1e-4)
    with pytest.raises(QueryError, match="knows none of its words"):
        run_model(load_model(f"ngram:{opened}"), "zebra gnu")


def test_an_explicit_policy_wins_over_the_models_own_and_is_signed(arpa: Path) -> None:
    own, number, uniform = (load_model(f"ngram:{arpa}{each}") for each in ("", "(unknown=-50)", "(unknown='uniform')"))
    found = [float(run_model(model, "The zebra sleeps").logprobs[1]) for model in (own, number, uniform)]
    assert found[1] == -50
    assert found[2] == pytest.approx(-math.log(Arpa(arpa).vocabulary_size))
    assert len(set(found)) == 3
    assert "unknown='spelling'" in own.signature
    assert "unknown=-50.0" in number.signature
    assert "unknown='uniform'" in uniform.signature


def test_the_start_symbol_is_signed(arpa: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.arpa"
    bare.write_text("\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta\n\\end\\\n")
    assert "bos='<s>'" in load_model(f"ngram:{arpa}").signature
    assert "bos=None" in load_model(f"ngram:{bare}").signature
    with pytest.raises(ModelError, match="no word '</s>'"):
        run_model(load_model(f"ngram:{bare}(eos=True)"), "a")


def test_words_are_split_as_the_options_say(arpa: Path) -> None:
    text = "The cats isn't, sleep."
    assert run_model(load_model(f"ngram:{arpa}"), text).tokens == ("The", "cats", "isn't,", "sleep.")
    assert run_model(load_model(f"ngram:{arpa}(units='words')"), text).tokens == ("The", "cats", "isn't", "sleep")
    marks = load_model(f"ngram:{arpa}(units='punctuation', lower=True)")
    assert run_model(marks, "the cats isn't, sleep.").tokens == ("the", "cats", "isn't", ",", "sleep", ".")
    with pytest.raises(ModelError, match="units is 'letters'"):
        load_model(f"ngram:{arpa}(units='letters')")
    with pytest.raises(ModelError, match="unknown is 1"):
        load_model(f"ngram:{arpa}(unknown=1)")


def test_context_and_target(arpa: Path) -> None:
    model = load_model(f"ngram:{arpa}")
    whole = run_model(model, "The cats sleep.")
    after = run_model(model, "cats sleep.", context="The")
    assert after.logprobs.tolist() == whole.logprobs.tolist()[1:]
    assert after.offsets == ((0, 4), (5, 11))
    part = run_model(model, "The cats sleep.", target=(4, 8))
    assert (part.tokens, part.logprobs.tolist()) == (("cats",), whole.logprobs.tolist()[1:2])


def test_a_gzipped_file_is_the_same_model(arpa: Path, tmp_path: Path) -> None:
    packed = tmp_path / "tiny.arpa.gz"
    packed.write_bytes(gzip.compress(arpa.read_bytes()))
    for text in TEXTS:
        plain, other = run_model(load_model(f"ngram:{arpa}"), text), run_model(load_model(f"ngram:{packed}"), text)
        assert plain.logprobs.tolist() == other.logprobs.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "no n-gram model in a known format"),
        (b"\\data\\\nngram 1=2\n\n\\1-grams:\n-1\ta\n\\end\\\n", "declares"),
        (b"\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta\n", "last line"),
        (b"\\data\\\nngram 1=1\n\n\\1-grams:\nx\ta\n\\end\\\n", "line 5"),
        (b"\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta b c\n\\end\\\n", "line 5"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
        (b"\\data\\\nngram x=1\n", "'x' is not a whole number"),
        (b"\\data\\\nngram 1=1\n\n\\two-grams:\n", "'two' is not a whole number"),
        (b"\\data\\\nngram 1=1\n\n\\1-grams:\n5\ta\n\\end\\\n", "at most 0"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.arpa"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        run_model(load_model(f"ngram:{path}"), "a")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="cannot open the n-gram model"):
        load_model("ngram:/no/such/file")


def test_kenlm_binaries_are_recognised_and_need_kenlm(tmp_path: Path, monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "kenlm", None)
    path = tmp_path / "m.bin"
    path.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\x00")
    with pytest.raises(MissingExtra, match=r"acceptability\[ngram\]"):
        run_model(load_model(f"ngram:{path}"), "a")


def test_kenlm_gives_the_same_numbers(arpa: Path) -> None:
    pytest.importorskip("kenlm", reason="kenlm is not installed (make install)")
    from acceptability.models.ngram.model import KenLM

    ours, theirs = Arpa(arpa), KenLM(arpa)
    for text in TEXTS:
        history = ["<s>"]
        for word in [*text.split(), "</s>"]:
            assert theirs.logprob(word, history) == pytest.approx(ours.logprob(word, history), abs=1e-4)
            history.append(word)


@pytest.mark.skipif(not list_named_models()["sphinx-trigram"].is_installed(), reason="pocketsphinx is not installed")
def test_the_sphinx_trigram() -> None:
    model = load_model("sphinx-trigram")
    found = run_model(model, "The cat, sleeps!")
    assert found.tokens == ("the", "cat", "sleeps")
    assert found.logprobs[1] == pytest.approx(-7.4725, abs=1e-3)
    unknown = run_model(model, "The xyzzyq sleeps.")
    assert unknown.logprobs[1] == pytest.approx(-math.log(72547))
    assert run_model(model, "She isn't here.").logprobs.sum() > run_model(model, "She aren't here.").logprobs.sum()


@pytest.mark.skipif(not list_named_models()["sphinx-trigram"].is_installed(), reason="pocketsphinx is not installed")
def test_a_truncated_sphinx_file(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(b"Trie Language Model\x03c\x1b\x01\x00")
    with pytest.raises(ModelError, match="cannot be read as a CMU Sphinx model"):
        run_model(load_model(f"ngram:{path}"), "a")


def test_a_sphinx_model_needs_pocketsphinx(tmp_path: Path, monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    path = tmp_path / "m.bin"
    path.write_bytes(b"Trie Language Model\x03c\x1b\x01\x00")
    with pytest.raises(MissingExtra, match="pocketsphinx"):
        run_model(load_model(f"ngram:{path}"), "a")
