"""Sentences drawn from models: as often as the model says, the same for the same seed, and nothing cut short."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import load_model, load_suite
from acceptability.errors import ModelError, SpecError, UnknownName
from acceptability.models.hf import causal_forward
from acceptability.models.ngram import trained
from acceptability.models.recurrent import network as recurrent_network
from acceptability.models.sampling import TextNormalizer, draw_sentences, make_normalizer
from acceptability.text.words import (
    END,
    SPECIAL_WORDS,
    START,
    UNKNOWN,
    Vocabulary,
    find_word_spans,
    join_words,
    normalize_word,
)
from acceptability.train import train
from acceptability.train.ngram_recipes import NGramRecipe
from tiny import SENTENCES, TEXTS, make_recurrent

BANNED = frozenset({START, UNKNOWN})
Next = Callable[[list[int]], np.ndarray]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def ngram_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "text.txt").write_text("\n".join(SENTENCES * 3))
    train(NGramRecipe(order=3, vocabulary=30, bits=8), [folder / "text.txt"], folder / "m")
    return folder / "m"


def follows(rows: list[list[int] | None], logprobs: Next, temperature: float = 1.0) -> None:
    """Check first words, and second words after the two most frequent first ones, by chi-square."""
    whole = [[*row, END] for row in rows if row is not None]
    histories = [[], *([word] for word, _ in Counter(row[0] for row in whole if row[0] != END).most_common(2))]
    chi, free = 0.0, 0
    for history in histories:
        after = [row[len(history)] for row in whole if row[: len(history)] == history]
        logs = logprobs(history).astype(np.float64) / temperature
        logs[sorted(BANNED)] = -np.inf
        expected = np.exp(logs - logs.max())
        expected *= len(after) / expected.sum()
        found = np.bincount(after, minlength=len(expected))
        assert found[sorted(BANNED)].sum() == 0
        often = expected >= 5
        chi += float(((found - expected)[often] ** 2 / expected[often]).sum())
        free += int(often.sum())
    assert free >= 9
    assert chi < free + 4 * (2 * free) ** 0.5


@pytest.mark.parametrize(("begins", "temperature"), [(True, 1.0), (True, 0.6), (False, 1.0), (False, 1.8)])
def test_ngram_samples_follow_its_probabilities(ngram_dir: Path, temperature: float, begins: bool) -> None:
    table = load_model(f"ngram:{ngram_dir}").table
    assert len(table.orders) == 3

    def logprobs(history: list[int]) -> np.ndarray:
        before = [START, *history] if begins else history
        row = np.array([[*before, word] for word in range(table.size)])
        starts = np.zeros(row.shape, bool)
        starts[:, 0] = True
        return table.logprobs(row.ravel(), starts.ravel()).reshape(row.shape)[:, -1]

    sampler = trained.NGramSampler(table, temperature, BANNED)
    rows = sampler.sample_word_ids(10_000, 200, begins, np.random.default_rng(3))
    follows(rows, logprobs, temperature)


@pytest.mark.parametrize(
    ("cell", "output"), [("rnn", "softmax"), ("lstm", "tas"), ("qrnn", "adaptive"), ("lstm", "classes")]
)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_recurrent_samples_follow_its_probabilities(cell: str, output: str, temperature: float, tmp_path: Path) -> None:
    net = load_model(f"recurrent:{make_recurrent(tmp_path, cell, output)}").net
    with torch.no_grad():
        for each in net.parameters():
            each.mul_(1 if cell == "rnn" else 3)

    @torch.inference_mode()
    def logprobs(history: list[int]) -> np.ndarray:
        layer_outputs, _ = net.run_layers(torch.tensor([[START], *([word] for word in history)]))
        return net.output.all_logprobs(layer_outputs[-1][-1], net.table)[0].numpy()

    # Hardly any may be left out for its length: they would not be drawn as they score.
    rows = recurrent_network.sample_word_ids(net, 4000, 400, temperature, BANNED, np.random.default_rng(4))
    assert sum(row is None for row in rows) < 40
    follows(rows, logprobs, temperature)


def test_transformer_samples_follow_its_probabilities(causal_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = causal_forward.CausalSampler(load_model(f"causal:{causal_dir}"), longest=20, temperature=0.7)
    monkeypatch.setattr(sampler, "_decode_sentence", lambda tokens: (" ".join(map(str, tokens)), len(tokens) == 2))
    drawn = [list(map(int, text.split())) for text in sampler.sample_texts(6000, np.random.default_rng(1))]
    for history in ([], [Counter(row[0] for row in drawn).most_common(1)[0][0]]):
        after = [row[len(history)] for row in drawn if row[: len(history)] == history]
        with torch.inference_mode():
            logits = sampler.net(input_ids=torch.tensor([[*sampler.start_ids, *history]])).logits[0, -1]
        expected = (logits.double() / 0.7).softmax(0).numpy() * len(after)
        found = np.bincount(after, minlength=len(expected))
        often = expected >= 5
        chi, free = float(((found - expected)[often] ** 2 / expected[often]).sum()), int(often.sum())
        assert free >= 4
        assert chi < free + 4 * (2 * free) ** 0.5


@pytest.mark.parametrize("kind", ["ngram", "recurrent", "causal"])
def test_the_same_seed_gives_the_same_sentences(
    kind: str, ngram_dir: Path, recurrent_dir: Path, causal_dir: Path
) -> None:
    name = f"{kind}:" + str({"ngram": ngram_dir, "recurrent": recurrent_dir, "causal": causal_dir}[kind])
    found = [list(draw_sentences(name, 20, seed=seed, longest=40)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert list(draw_sentences(name, 5, seed=1, longest=40)) == found[0][:5]
    assert all(text.strip() for text in found[0])


def test_unknown_words_are_sampled_only_on_request(ngram_dir: Path, recurrent_dir: Path) -> None:
    for name in (f"ngram:{ngram_dir}", f"recurrent:{recurrent_dir}"):
        assert not any("<unk>" in text for text in draw_sentences(name, 300, seed=1))
        assert any("<unk>" in text for text in draw_sentences(name, 300, seed=1, unknown=True))
        assert not any("<s>" in text for text in draw_sentences(name, 300, seed=1, unknown=True))


def test_a_long_sentence_is_rejected_and_reported(ngram_dir: Path) -> None:
    told: Counter[str] = Counter()
    found = list(
        draw_sentences(f"ngram:{ngram_dir}", 500, seed=1, longest=6, on_rejected=lambda why: told.update([why]))
    )
    shape = make_normalizer(f"ngram:{ngram_dir}")
    assert len(found) == 500
    assert max(len(shape.split_words(text)) for text in found) <= 6
    assert told["too long"] > 50


def test_a_model_that_never_ends_is_an_error(ngram_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trained.NGramSampler, "sample_word_ids", lambda self, count, longest, begins, random: [None] * count
    )
    with pytest.raises(ModelError, match="too long or empty; try a greater longest"):
        next(draw_sentences(f"ngram:{ngram_dir}", 1, seed=1))


def test_other_models_cannot_be_sampled_from(arpa: Path, aggregate_markov_dir: Path, tmp_path: Path) -> None:
    for name in (f"ngram:{arpa}", "uniform", f"aggregate-markov:{aggregate_markov_dir}"):
        with pytest.raises(ModelError, match="can be sampled from recurrent: and causal: models, and from n-gram"):
            draw_sentences(name, 1, seed=1)
    improper = make_recurrent(tmp_path, "lstm", "tas_double")
    with pytest.raises(ModelError, match="do not sum to 1: it cannot be sampled from"):
        draw_sentences(f"recurrent:{improper}(improper=True)", 1, seed=1)
    with pytest.raises(ModelError, match="improper=True"):
        draw_sentences(f"recurrent:{improper}", 1, seed=1)
    with pytest.raises(UnknownName, match="no model named 'nothing'"):
        draw_sentences("nothing", 1, seed=1)


def test_a_transformer_without_a_start_token_cannot_be_sampled_from(causal_dir: Path) -> None:
    with pytest.raises(ModelError, match="no start token to begin a sentence with"):
        draw_sentences(f"causal:{causal_dir}(bos=None)", 1, seed=1)
    with pytest.raises(ModelError, match="leave them out for sampling"):
        draw_sentences(f"causal:{causal_dir}(preset='lm-eval')", 1, seed=1)


@pytest.mark.parametrize(
    "wrong",
    [{"seed": -1}, {"count": 0}, {"count": -1}, {"temperature": 0.0}, {"temperature": float("nan")}, {"longest": 0}],
)
def test_bad_requests_are_refused_at_once(wrong: dict[str, float]) -> None:
    options = {"count": 3, "seed": 1} | wrong
    with pytest.raises(SpecError):
        draw_sentences("trigram", **options)


@pytest.mark.parametrize("text", [*TEXTS, "She doesn't pay $1,000.", "It's the cats' \"food\", isn't it?", "A. . ."])
def test_joined_words_are_split_into_the_same_words(text: str) -> None:
    words = [text[start:end] for start, end in find_word_spans(text, "split")]
    again = join_words(words)
    assert [again[start:end] for start, end in find_word_spans(again, "split")] == words
    if text != "A. . .":
        assert again == text


def shares(lines: list[str]) -> tuple[float, float]:
    """Return how many lines keep their words when they are cut and joined again, and how many every letter."""
    lines = [" ".join(line.replace("’", "'").split()) for line in lines]
    words = [[normalize_word(line[a:b], lower=False) for a, b in find_word_spans(line, "split")] for line in lines]
    texts = [join_words(each) for each in words]
    again = [[text[a:b] for a, b in find_word_spans(text, "split")] for text in texts]
    kept = [sum(one == two for one, two in zip(*both, strict=True)) for both in ((again, words), (texts, lines))]
    return kept[0] / len(lines), kept[1] / len(lines)


def test_the_sentences_of_a_suite_are_joined_as_they_were() -> None:
    words, texts = shares([each.text for each in load_suite("starter").sentences])
    assert words == 1
    assert texts > 0.99


def test_real_text_is_joined_as_it_was(data: Path) -> None:
    files = sorted((data.parent / "corpus" / "mix10m" / "dev").glob("*.txt.xz"))
    if not files:
        pytest.skip("the corpus is not here")
    words, texts = shares("".join(lzma.decompress(path.read_bytes()).decode() for path in files).splitlines())
    assert words == 1
    assert texts > 0.97


def test_real_sentences_are_normalized_like_sampled_ones(ngram_dir: Path, causal_dir: Path) -> None:
    known = Vocabulary((*SPECIAL_WORDS, "cats", "sleep", "."), "split", lower=True)
    assert TextNormalizer(known).normalize("Cats ’sleep  well .") == "cats 'sleep <unk>.".replace(
        "'sleep", "<unk> sleep"
    )
    assert TextNormalizer(known).normalize("cats <unk>.") == "cats <unk>."
    assert TextNormalizer(lower=True).normalize("The  Cats") == "the cats"
    cased = Vocabulary((*SPECIAL_WORDS, "Ann", "."), "split", lower=False)
    assert TextNormalizer(cased, lower=True).normalize("Ann ann.") == "ann <unk>."
    assert make_normalizer("").normalize("Mr. Fox left. He  was ill.") == "Mr. Fox left. He was ill."
    assert make_normalizer(f"causal:{causal_dir}").normalize("Mr. Fox left. He was ill.") == "Mr. Fox left."
    shape = make_normalizer(f"ngram:{ngram_dir}")
    for text in draw_sentences(f"ngram:{ngram_dir}", 200, seed=5, unknown=True):
        assert shape.normalize(text) == text
