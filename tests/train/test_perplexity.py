from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import CorpusError, ModelError, SpecError
from acceptability.models import load_model
from acceptability.train import train
from acceptability.train.corpus import open_corpus
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.perplexity import _RunningTotal, perplexity, pseudo_perplexity
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
    train(NGramRecipe(), [tmp_path / "train.txt"], tmp_path / "m")
    return f"ngram:{tmp_path / 'm'}"


def test_the_uniform_models_perplexity_is_its_vocabulary(text: Path) -> None:
    result = perplexity("uniform(vocabulary=100)", open_corpus([text]), eos="exclude")
    assert result.perplexity == pytest.approx(100)
    assert (result.words, result.sentences, result.unknown) == (9, 3, None)
    assert result.signature.startswith("perplexity(words='spaces', oov='include', eos='exclude')|corpus:")


def test_conventions_by_hand(text: Path, model: str) -> None:
    opened = load_model(f"{model}(eos=True, unknown='<unk>')")
    token_scores = opened.run(opened.encode([Query(line) for line in text.read_text().splitlines()]))
    ends = [float(scores.logprobs[-1]) for scores in token_scores]
    # Four words a sentence by the rule "split"; zebra and sleeps are unknown.
    unknown_logprob = float(token_scores[1].logprobs[1] + token_scores[1].logprobs[2])
    whole = sum(float(scores.logprobs.sum()) for scores in token_scores)
    for oov, eos, total, words in (
        ("include", "include", whole, 15),
        ("include", "exclude", whole - sum(ends), 12),
        ("exclude", "include", whole - unknown_logprob, 13),
        ("exclude", "exclude", whole - unknown_logprob - sum(ends), 10),
    ):
        result = perplexity(model, open_corpus([text]), oov=oov, eos=eos)
        assert (result.words, result.unknown) == (words, 2)
        assert result.perplexity == pytest.approx(math.exp(-total / words), rel=1e-6)


def test_any_model_works(text: Path, causal_dir: Path, arpa: Path) -> None:
    for name in (f"causal:{causal_dir}", f"ngram:{arpa}"):
        assert perplexity(name, open_corpus([text])).perplexity > 1
        assert perplexity(name, open_corpus([text])).words == 12


def test_a_first_word_that_is_not_scored_does_not_count(text: Path, causal_dir: Path) -> None:
    result = perplexity(f"causal:{causal_dir}(bos=None)", open_corpus([text]), eos="exclude")
    assert result.words <= 9
    assert math.isfinite(result.perplexity)


def test_a_sentence_of_unknown_words_alone_counts(tmp_path: Path, model: str) -> None:
    path = tmp_path / "strange.txt"
    path.write_text("Zebra gnu\n")
    assert perplexity(model, open_corpus([path])).unknown == 2
    with pytest.raises(CorpusError, match="all are unknown"):
        perplexity(model, open_corpus([path]), oov="exclude", eos="exclude")


def test_wrong_options_are_errors(text: Path, causal_dir: Path, classifier_dir: Path) -> None:
    corpus = open_corpus([text])
    with pytest.raises(SpecError, match="--eos exclude"):
        perplexity("uniform", corpus)
    with pytest.raises(SpecError, match="oov is 'maybe'"):
        perplexity("uniform", corpus, oov="maybe")
    with pytest.raises(ModelError, match="cannot tell which words"):
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
    with pytest.raises(SpecError, match="expected one of spaces"):
        perplexity("uniform", corpus, eos="exclude", words="letters")


@pytest.mark.parametrize(
    ("tokens", "offsets", "words", "logprob"),
    [
        (("happy", " cats", "</s>"), ((2, 7), (7, 12), (12, 12)), 2, -6.0),
        (("un", "happy", " cats", "</s>"), ((0, 2), (2, 7), (7, 12), (12, 12)), 3, -10.0),
        (("</s>",), ((12, 12),), 1, -1.0),
    ],
)
def test_a_word_whose_first_token_has_no_score_does_not_count(tokens, offsets, words: int, logprob: float) -> None:
    """Neither as a word nor with the log-probability of its rest; the end of the sentence always counts."""
    logprobs = {3: np.float32([-4, -5, -1]), 4: np.float32([-1, -3, -5, -1]), 1: np.float32([-1])}[len(tokens)]
    total = _RunningTotal(load_model("uniform"), "spaces", without_unknown=False, with_ends=True)
    total.add(TokenScores("unhappy cats", tokens, offsets, logprobs))
    assert (total.words, total.logprob) == (words, logprob)


@pytest.mark.parametrize("variant", ["pll", "word_l2r"])
def test_a_pseudo_perplexity_by_hand(variant: str, text: Path, masked_dir: Path) -> None:
    name = f"masked:{masked_dir}(variant='{variant}')"
    opened = load_model(name)
    token_scores = opened.run(opened.encode([Query(line) for line in text.read_text().splitlines()]))
    total = sum(float(scores.logprobs.sum()) for scores in token_scores)
    for words, count in (("", 9), ("split", 12)):
        result = pseudo_perplexity(name, open_corpus([text]), words=words)
        assert (result.words, result.sentences) == (count, 3)
        assert result.pseudo_perplexity == pytest.approx(math.exp(-total / count), rel=1e-5)
        assert result.pseudo_logprob == pytest.approx(total, rel=1e-5)
        assert result.signature.startswith(f"pseudo_perplexity(words='{words or 'spaces'}')|corpus:")
        assert f"variant='{variant}'" in result.signature
    assert "perplexity" not in result.row()


def test_a_masked_model_has_no_perplexity_but_a_pseudo_perplexity(text: Path, masked_dir: Path, model: str) -> None:
    for eos in ("include", "exclude"):
        with pytest.raises(ModelError, match=r"no perplexity\. Add --pseudo"):
            perplexity(f"masked:{masked_dir}", open_corpus([text]), eos=eos)
    for name in (model, "uniform"):
        with pytest.raises(ModelError, match="omit --pseudo"):
            pseudo_perplexity(name, open_corpus([text]))


def test_the_command_marks_a_pseudo_perplexity(text: Path, masked_dir: Path) -> None:
    arguments = ["perplexity", f"masked:{masked_dir}", "--corpus", str(text)]
    result = pseudo_perplexity(f"masked:{masked_dir}", open_corpus([text]))
    done = CliRunner().invoke(app, [*arguments, "--pseudo"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == f"{result.pseudo_perplexity:.2f}"
    assert "a pseudo-perplexity, to compare with such only" in done.stderr
    assert set(json.loads(CliRunner().invoke(app, [*arguments, "--pseudo", "--json"]).stdout)) == set(result.row())
    for wrong in (["--eos", "exclude"], ["--oov", "include"], ["--improper"]):
        assert isinstance(CliRunner().invoke(app, [*arguments, "--pseudo", *wrong]).exception, SpecError)
    assert "--pseudo" in str(CliRunner().invoke(app, arguments).exception)


def test_an_improper_perplexity_needs_an_option(text: Path, tmp_path: Path, model: str) -> None:
    name = f"recurrent:{make_recurrent(tmp_path / 'tas', 'qrnn', 'tas_double')}(improper=True)"
    with pytest.raises(ModelError, match=r"sum to more than 1, and so no perplexity\. Add --improper"):
        perplexity(name, open_corpus([text]))
    result = perplexity(name, open_corpus([text]), improper=True)
    assert result.perplexity == pytest.approx(math.exp(-result.logprob / result.words))
    assert result.signature.startswith("perplexity(words='split', oov='include', eos='include', improper=True)|")
    with pytest.raises(ModelError, match="omit --improper"):
        perplexity(model, open_corpus([text]), improper=True)
    done = CliRunner().invoke(app, ["perplexity", name, "--corpus", str(text), "--improper"])
    assert done.stdout.strip() == f"{result.perplexity:.2f}"
    assert "this is no perplexity" in done.stderr
