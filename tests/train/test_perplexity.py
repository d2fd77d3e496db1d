from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import CorpusError, ModelError, SpellingError
from acceptability.models import load_model
from acceptability.train import train
from acceptability.train.corpus import open_corpus
from acceptability.train.ngram import NGram
from acceptability.train.perplexity import _Total, perplexity, pseudo_perplexity
from acceptability.types import Query, TokenScores
from tiny import SENTENCES, make_recurrent


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "dev.txt"
    path.write_text("The cats sleep.\nThe zebra sleeps.\nThe cats sleep.\n")
    return path


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_text("\n".join(SENTENCES))
    train(NGram(), [tmp_path / "train.txt"], tmp_path / "m")
    return f"ngram:{tmp_path / 'm'}"


def test_the_uniform_models_perplexity_is_its_vocabulary(text: Path) -> None:
    found = perplexity("uniform(vocabulary=100)", open_corpus([text]), eos="exclude")
    assert found.perplexity == pytest.approx(100)
    assert (found.words, found.sentences, found.unknown) == (9, 3, None)
    assert found.signature.startswith("perplexity(words='spaces', oov='include', eos='exclude')|corpus:")


def test_conventions_by_hand(text: Path, model: str) -> None:
    asked = load_model(f"{model}(eos=True)")
    said = asked.run(asked.encode([Query(line) for line in text.read_text().splitlines()]))
    ends = [float(each.logprobs[-1]) for each in said]
    # Four words a sentence by the rule "split"; zebra and sleeps are unknown.
    strange = float(said[1].logprobs[1] + said[1].logprobs[2])
    whole = sum(float(each.logprobs.sum()) for each in said)
    for oov, eos, total, words in (
        ("include", "include", whole, 15),
        ("include", "exclude", whole - sum(ends), 12),
        ("exclude", "include", whole - strange, 13),
        ("exclude", "exclude", whole - strange - sum(ends), 10),
    ):
        found = perplexity(model, open_corpus([text]), oov=oov, eos=eos)
        assert (found.words, found.unknown) == (words, 2)
        assert found.perplexity == pytest.approx(math.exp(-total / words), rel=1e-6)


def test_any_model_works(text: Path, causal_dir: Path, arpa: Path) -> None:
    for name in (f"causal:{causal_dir}", f"ngram:{arpa}"):
        assert perplexity(name, open_corpus([text])).perplexity > 1
        assert perplexity(name, open_corpus([text])).words == 12


def test_a_first_word_that_is_not_scored_does_not_count(text: Path, causal_dir: Path) -> None:
    found = perplexity(f"causal:{causal_dir}(bos=None)", open_corpus([text]), eos="exclude")
    assert found.words <= 9
    assert math.isfinite(found.perplexity)


def test_a_sentence_of_unknown_words_alone_counts(tmp_path: Path, model: str) -> None:
    path = tmp_path / "strange.txt"
    path.write_text("Zebra gnu\n")
    assert perplexity(model, open_corpus([path])).unknown == 2
    with pytest.raises(CorpusError, match="knows none"):
        perplexity(model, open_corpus([path]), oov="exclude", eos="exclude")


def test_what_cannot_be_asked(text: Path, causal_dir: Path, classifier_dir: Path) -> None:
    corpus = open_corpus([text])
    with pytest.raises(SpellingError, match="--eos exclude"):
        perplexity("uniform", corpus)
    with pytest.raises(SpellingError, match="oov is 'maybe'"):
        perplexity("uniform", corpus, oov="maybe")
    with pytest.raises(ModelError, match="does not tell which words"):
        perplexity(f"causal:{causal_dir}", corpus, oov="exclude")
    with pytest.raises(ModelError, match="is a classifier"):
        perplexity(f"classifier:{classifier_dir}", corpus, eos="exclude")


def test_words_may_be_counted_by_another_rule(text: Path) -> None:
    corpus = open_corpus([text])
    own = perplexity("uniform(vocabulary=100)", corpus, eos="exclude")
    split = perplexity("uniform(vocabulary=100)", corpus, eos="exclude", words="split")
    assert split.logprob == own.logprob
    assert split.words > own.words
    assert split.perplexity == pytest.approx(math.exp(-own.logprob / split.words))
    assert "words='split'" in split.signature
    with pytest.raises(SpellingError, match="expected one of spaces"):
        perplexity("uniform", corpus, eos="exclude", words="letters")


@pytest.mark.parametrize(
    ("tokens", "offsets", "words", "logprob"),
    [
        (("happy", " cats", "</s>"), ((2, 7), (7, 12), (12, 12)), 2, -6.0),
        (("un", "happy", " cats", "</s>"), ((0, 2), (2, 7), (7, 12), (12, 12)), 3, -10.0),
        (("</s>",), ((12, 12),), 1, -1.0),
    ],
)
def test_a_word_whose_beginning_was_not_scored_does_not_count(tokens, offsets, words: int, logprob: float) -> None:
    """Neither as a word nor with the log-probability of its rest; the end of the sentence always counts."""
    logprobs = {3: np.float32([-4, -5, -1]), 4: np.float32([-1, -3, -5, -1]), 1: np.float32([-1])}[len(tokens)]
    total = _Total(load_model("uniform"), "spaces", without_unknown=False, with_ends=True)
    total.take(TokenScores("unhappy cats", tokens, offsets, logprobs))
    assert (total.words, total.logprob) == (words, logprob)


@pytest.mark.parametrize("variant", ["pll", "word_l2r"])
def test_a_pseudo_perplexity_by_hand(variant: str, text: Path, masked_dir: Path) -> None:
    name = f"masked:{masked_dir}(variant='{variant}')"
    asked = load_model(name)
    said = asked.run(asked.encode([Query(line) for line in text.read_text().splitlines()]))
    total = sum(float(each.logprobs.sum()) for each in said)
    for words, count in (("", 9), ("split", 12)):
        found = pseudo_perplexity(name, open_corpus([text]), words=words)
        assert (found.words, found.sentences) == (count, 3)
        assert found.pseudo_perplexity == pytest.approx(math.exp(-total / count), rel=1e-5)
        assert found.pseudo_logprob == pytest.approx(total, rel=1e-5)
        assert found.signature.startswith(f"pseudo_perplexity(words='{words or 'spaces'}')|corpus:")
        assert f"variant='{variant}'" in found.signature
    assert "perplexity" not in found.row()


def test_a_masked_model_has_no_perplexity_but_a_pseudo_perplexity(text: Path, masked_dir: Path, model: str) -> None:
    for eos in ("include", "exclude"):
        with pytest.raises(ModelError, match=r"no perplexity\. Add --pseudo"):
            perplexity(f"masked:{masked_dir}", open_corpus([text]), eos=eos)
    for name in (model, "uniform"):
        with pytest.raises(ModelError, match="leave --pseudo away"):
            pseudo_perplexity(name, open_corpus([text]))


def test_the_command_tells_a_pseudo_perplexity_apart(text: Path, masked_dir: Path) -> None:
    asked = ["perplexity", f"masked:{masked_dir}", "--corpus", str(text)]
    found = pseudo_perplexity(f"masked:{masked_dir}", open_corpus([text]))
    done = CliRunner().invoke(app, [*asked, "--pseudo"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == f"{found.pseudo_perplexity:.2f}"
    assert "a pseudo-perplexity, to compare with such only" in done.stderr
    assert set(json.loads(CliRunner().invoke(app, [*asked, "--pseudo", "--json"]).stdout)) == set(found.row())
    for wrong in (["--eos", "exclude"], ["--oov", "include"], ["--improper"]):
        assert isinstance(CliRunner().invoke(app, [*asked, "--pseudo", *wrong]).exception, SpellingError)
    assert "--pseudo" in str(CliRunner().invoke(app, asked).exception)


def test_what_only_looks_like_a_perplexity_must_be_asked_for(text: Path, tmp_path: Path, model: str) -> None:
    name = f"recurrent:{make_recurrent(tmp_path / 'tas', 'qrnn', 'tas_double')}(improper=True)"
    with pytest.raises(ModelError, match=r"sum to more than 1, and so no perplexity\. Add --improper"):
        perplexity(name, open_corpus([text]))
    found = perplexity(name, open_corpus([text]), improper=True)
    assert found.perplexity == pytest.approx(math.exp(-found.logprob / found.words))
    assert found.signature.startswith("perplexity(words='split', oov='include', eos='include', improper=True)|")
    with pytest.raises(ModelError, match="leave --improper away"):
        perplexity(model, open_corpus([text]), improper=True)
    done = CliRunner().invoke(app, ["perplexity", name, "--corpus", str(text), "--improper"])
    assert done.stdout.strip() == f"{found.perplexity:.2f}"
    assert "this is no perplexity" in done.stderr
