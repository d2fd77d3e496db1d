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
from acceptability.errors import ModelError, SpellingError, UnknownName
from acceptability.models import causal_sampling, ngram_sampling, recurrent_sampling
from acceptability.models.joining import joined
from acceptability.models.sampling import Form, form, sampled
from acceptability.models.splitting import spans, spelled
from acceptability.models.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary
from acceptability.train import train
from acceptability.train.ngram import NGram
from tiny import SENTENCES, TEXTS, make_recurrent

BANNED = frozenset({START, UNKNOWN})
Next = Callable[[list[int]], np.ndarray]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def ngram_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sampled")
    (place / "text.txt").write_text("\n".join(SENTENCES * 3))
    train(NGram(order=3, vocabulary=30, bits=8), [place / "text.txt"], place / "m")
    return place / "m"


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
def test_an_ngram_is_drawn_from_as_it_scores(ngram_dir: Path, temperature: float, begins: bool) -> None:
    table = load_model(f"ngram:{ngram_dir}").table
    assert len(table.orders) == 3

    def logprobs(history: list[int]) -> np.ndarray:
        before = [START, *history] if begins else history
        row = np.array([[*before, word] for word in range(table.size)])
        starts = np.zeros(row.shape, bool)
        starts[:, 0] = True
        return table.logprobs(row.ravel(), starts.ravel()).reshape(row.shape)[:, -1]

    sampler = ngram_sampling.Sampler(table, temperature, BANNED)
    rows = sampler.sentences(10_000, 200, begins, np.random.default_rng(3))
    follows(rows, logprobs, temperature)


@pytest.mark.parametrize(
    ("cell", "output"), [("rnn", "softmax"), ("lstm", "tas"), ("qrnn", "adaptive"), ("lstm", "classes")]
)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_a_network_is_drawn_from_as_it_scores(cell: str, output: str, temperature: float, tmp_path: Path) -> None:
    net = load_model(f"recurrent:{make_recurrent(tmp_path, cell, output)}").net
    with torch.no_grad():
        for each in net.parameters():
            each.mul_(1 if cell == "rnn" else 3)

    @torch.inference_mode()
    def logprobs(history: list[int]) -> np.ndarray:
        said, _ = net.states(torch.tensor([[START], *([word] for word in history)]))
        return net.output.everything(said[-1][-1], net.table)[0].numpy()

    # Hardly any may be left out for its length: they would not be drawn as they score.
    rows = recurrent_sampling.sentences(net, 4000, 400, temperature, BANNED, np.random.default_rng(4))
    assert sum(row is None for row in rows) < 40
    follows(rows, logprobs, temperature)


def test_a_transformer_is_drawn_from_as_it_scores(causal_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = causal_sampling.Sampler(load_model(f"causal:{causal_dir}"), longest=20, temperature=0.7)
    monkeypatch.setattr(sampler, "_told", lambda tokens: (" ".join(map(str, tokens)), len(tokens) == 2))
    drawn = [list(map(int, text.split())) for text in sampler.texts(6000, np.random.default_rng(1))]
    for history in ([], [Counter(row[0] for row in drawn).most_common(1)[0][0]]):
        after = [row[len(history)] for row in drawn if row[: len(history)] == history]
        with torch.inference_mode():
            logits = sampler.net(input_ids=torch.tensor([[*sampler.start, *history]])).logits[0, -1]
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
    found = [list(sampled(name, 20, seed=seed, longest=40)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert list(sampled(name, 5, seed=1, longest=40)) == found[0][:5]
    assert all(text.strip() for text in found[0])


def test_unknown_words_are_drawn_only_if_asked(ngram_dir: Path, recurrent_dir: Path) -> None:
    for name in (f"ngram:{ngram_dir}", f"recurrent:{recurrent_dir}"):
        assert not any("<unk>" in text for text in sampled(name, 300, seed=1))
        assert any("<unk>" in text for text in sampled(name, 300, seed=1, unknown=True))
        assert not any("<s>" in text for text in sampled(name, 300, seed=1, unknown=True))


def test_a_long_sentence_is_drawn_anew_and_told(ngram_dir: Path) -> None:
    told: Counter[str] = Counter()
    found = list(sampled(f"ngram:{ngram_dir}", 500, seed=1, longest=6, tell=lambda why: told.update([why])))
    shape = form(f"ngram:{ngram_dir}")
    assert len(found) == 500
    assert max(len(shape.words(text)) for text in found) <= 6
    assert told["too long"] > 50


def test_a_model_that_never_ends_is_an_error(ngram_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ngram_sampling.Sampler, "sentences", lambda self, count, longest, begins, random: [None] * count
    )
    with pytest.raises(ModelError, match="too long or empty; try a greater longest"):
        next(sampled(f"ngram:{ngram_dir}", 1, seed=1))


def test_what_cannot_be_drawn_from_says_so(arpa: Path, aggregate_markov_dir: Path, tmp_path: Path) -> None:
    for name in (f"ngram:{arpa}", "uniform", f"aggregate-markov:{aggregate_markov_dir}"):
        with pytest.raises(ModelError, match="can be drawn from recurrent: and causal: models, and from n-gram"):
            sampled(name, 1, seed=1)
    improper = make_recurrent(tmp_path, "lstm", "tas_double")
    with pytest.raises(ModelError, match="do not sum to 1: nothing can be drawn"):
        sampled(f"recurrent:{improper}(improper=True)", 1, seed=1)
    with pytest.raises(ModelError, match="improper=True"):
        sampled(f"recurrent:{improper}", 1, seed=1)
    with pytest.raises(UnknownName, match="no model named 'nothing'"):
        sampled("nothing", 1, seed=1)


def test_a_transformer_without_a_start_says_so(causal_dir: Path) -> None:
    with pytest.raises(ModelError, match="no start token to begin a sentence after"):
        sampled(f"causal:{causal_dir}(bos=None)", 1, seed=1)
    with pytest.raises(ModelError, match="leave them away to draw"):
        sampled(f"causal:{causal_dir}(preset='lm-eval')", 1, seed=1)


@pytest.mark.parametrize(
    "wrong",
    [{"seed": -1}, {"count": 0}, {"count": -1}, {"temperature": 0.0}, {"temperature": float("nan")}, {"longest": 0}],
)
def test_bad_requests_are_refused_at_once(wrong: dict[str, float]) -> None:
    asked = {"count": 3, "seed": 1} | wrong
    with pytest.raises(SpellingError):
        sampled("trigram", **asked)


@pytest.mark.parametrize("text", [*TEXTS, "She doesn't pay $1,000.", "It's the cats' \"food\", isn't it?", "A. . ."])
def test_joined_words_are_cut_into_the_same_words(text: str) -> None:
    words = [text[start:end] for start, end in spans(text, "split")]
    again = joined(words)
    assert [again[start:end] for start, end in spans(again, "split")] == words
    if text != "A. . .":
        assert again == text


def shares(lines: list[str]) -> tuple[float, float]:
    """Return how many lines keep their words when they are cut and joined again, and how many every letter."""
    lines = [" ".join(line.replace("’", "'").split()) for line in lines]
    words = [[spelled(line[a:b], lower=False) for a, b in spans(line, "split")] for line in lines]
    texts = [joined(each) for each in words]
    again = [[text[a:b] for a, b in spans(text, "split")] for text in texts]
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


def test_real_sentences_take_the_form_of_the_models_own(ngram_dir: Path, causal_dir: Path) -> None:
    known = Vocabulary((*SPECIAL, "cats", "sleep", "."), "split", lower=True)
    assert Form(known).text("Cats ’sleep  well .") == "cats 'sleep <unk>.".replace("'sleep", "<unk> sleep")
    assert Form(known).text("cats <unk>.") == "cats <unk>."
    assert Form(lower=True).text("The  Cats") == "the cats"
    cased = Vocabulary((*SPECIAL, "Ann", "."), "split", lower=False)
    assert Form(cased, lower=True).text("Ann ann.") == "ann <unk>."
    assert form("").text("Mr. Fox left. He  was ill.") == "Mr. Fox left. He was ill."
    assert form(f"causal:{causal_dir}").text("Mr. Fox left. He was ill.") == "Mr. Fox left."
    shape = form(f"ngram:{ngram_dir}")
    for text in sampled(f"ngram:{ngram_dir}", 200, seed=5, unknown=True):
        assert shape.text(text) == text
