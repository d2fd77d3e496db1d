"""Real and fake sentences: balanced, seeded, streamed, and nothing left out silently."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from itertools import islice, pairwise, repeat
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_suite
from acceptability.errors import CorpusError, ModelError, SpecError, SuiteError, UnknownName
from acceptability.models.sampling import make_normalizer
from acceptability.train import train
from acceptability.train.classifiers.real_fake import (
    RealFakeSource,
    generate_real_fake_sentences,
    generate_real_fake_texts,
    generate_sentences,
    write_real_fake,
)
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.train.ngram_recipes import NGramRecipe

NAMES = ["Ann", "Bob", "Cem", "Dora", "Eva", "Finn", "Gus", "Hal"]
NOUNS = ["cats", "dogs", "birds", "foxes", "linguists", "sentences", "houses", "rivers"]
VERBS = ["see", "chase", "like", "draw", "read", "fear", "know", "watch"]


def lines(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    chosen = random.integers(0, 8, (count, 5))
    return [
        f"{NAMES[a]} and the {NOUNS[b]} {VERBS[c]} {NAMES[d]}, the {NOUNS[e]} and {number}."
        for number, (a, b, c, d, e) in enumerate(chosen.tolist())
    ]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for number in range(3):
        (folder / f"{number}.txt").write_text("\n".join([*lines(300, number), "Hm!", "far " * 70]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(text: Path) -> Corpus:
    return open_corpus([text])


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory, text: Path) -> str:
    out = tmp_path_factory.mktemp("lm") / "m"
    train(NGramRecipe(order=2, vocabulary=30, lower=True), [text / "0.txt"], out)
    return f"ngram:{out}"


def test_the_corpus_is_read_once_and_half_is_fake(corpus: Corpus, lm: str) -> None:
    tally: Counter[str] = Counter()
    sentences = list(generate_sentences(RealFakeSource(corpus, lm, seed=1, buffer=100, tally=tally)))
    kinds = Counter(each.tags["kind"] for each in sentences)
    assert kinds == {"real": 900, "sampled": 450, "permuted": 450}
    assert {(each.tags["kind"], each.label) for each in sentences} == {("real", 1), ("sampled", 0), ("permuted", 0)}
    assert len({each.id for each in sentences}) == len(sentences)
    assert (tally["real, too short"], tally["real, too long"]) == (3, 3)
    assert {name: tally[name] for name in kinds} == kinds
    shape = make_normalizer(lm)
    real = Counter(each.text for each in sentences if each.label)
    assert real == Counter(shape.normalize(line) for number in range(3) for line in lines(300, number))


def test_every_buffer_is_balanced_and_shuffled(corpus: Corpus, lm: str) -> None:
    labels = [label for _, label in generate_real_fake_texts(corpus, lm, seed=1, buffer=100)]
    assert all(sum(labels[start : start + 200]) == 100 for start in range(0, 1800, 200))
    assert 60 < sum(one != two for one, two in pairwise(labels[:200])) < 140


def test_without_a_model_every_real_sentence_is_permuted_once(corpus: Corpus) -> None:
    sentences = list(generate_real_fake_texts(corpus, "", seed=1))
    real, fake = ([text for text, label in sentences if label == kind] for kind in (1, 0))
    assert len(real) == len(fake) == 900

    def bags(texts: list[str]) -> Counter[str]:
        return Counter(" ".join(sorted(text.lower().replace(",", "").strip(".").split())) for text in texts)

    assert bags(real) == bags(fake)
    assert not set(real) & set(fake)
    assert all(text.endswith(".") and text[0].isupper() for text in fake)


def test_fakes_are_normalised_like_the_model_and_are_never_real(corpus: Corpus, lm: str) -> None:
    sentences = list(generate_sentences(RealFakeSource(corpus, lm, seed=2)))
    shape = make_normalizer(lm)
    real = {each.text for each in sentences if each.label}
    assert all(each.text == each.text.lower() == shape.normalize(each.text) for each in sentences)
    assert not real & {each.text for each in sentences if not each.label}
    unknown = Counter(each.tags["kind"] for each in sentences if "<unk>" in each.text)
    assert min(unknown[kind] for kind in ("real", "sampled", "permuted")) > 100


def test_a_sampled_sentence_that_is_real_is_replaced(tmp_path: Path) -> None:
    few = ["the cats sleep .", "the dogs sleep ."] * 40
    (tmp_path / "few.txt").write_text("\n".join(few))
    train(NGramRecipe(order=2, vocabulary=0), [tmp_path / "few.txt"], tmp_path / "m")
    tally: Counter[str] = Counter()
    sentences = list(
        generate_real_fake_texts(open_corpus([tmp_path / "few.txt"]), f"ngram:{tmp_path / 'm'}", seed=1, tally=tally)
    )
    assert tally["sampled, a real sentence"] > 5
    assert not {text for text, label in sentences if label} & {text for text, label in sentences if not label}


@pytest.mark.parametrize(("always", "why"), [("Ann and Bob see dogs.", "a real sentence"), ("Hm!", "too short")])
def test_a_model_that_yields_only_unusable_sentences_is_an_error(
    always: str, why: str, tmp_path: Path, lm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("Ann and Bob see dogs.\n" * 9)
    module = "acceptability.train.classifiers.real_fake"
    monkeypatch.setattr(f"{module}.draw_sentences", lambda *_, **__: repeat(make_normalizer(lm).normalize(always)))
    with pytest.raises(ModelError, match=f"20,000 sentences of the model were rejected: {why}"):
        list(generate_real_fake_texts(open_corpus([tmp_path / "text.txt"]), lm, seed=1))


def test_the_seed_decides(corpus: Corpus, lm: str) -> None:
    sentences = [list(generate_real_fake_texts(corpus, lm, seed=seed, buffer=50)) for seed in (1, 1, 2)]
    assert sentences[0] == sentences[1] != sentences[2]


@pytest.mark.parametrize("limit", [2, 3, 99, 100, 250])
def test_a_limit_is_exact_and_balanced(corpus: Corpus, lm: str, limit: int) -> None:
    labels = [label for _, label in generate_real_fake_texts(corpus, lm, seed=1, buffer=40, limit=limit)]
    assert len(labels) == limit
    assert sum(labels) == limit - limit // 2


def test_all_sentences_are_lowercased(corpus: Corpus, tmp_path: Path, text: Path) -> None:
    train(NGramRecipe(order=2, vocabulary=0), [text / "0.txt"], tmp_path / "m")
    for lm in ("", f"ngram:{tmp_path / 'm'}"):
        sentences = list(generate_real_fake_texts(corpus, lm, seed=1, lower=True))
        assert all(each == each.lower() for each, _ in sentences)
        assert len(sentences) == 1800


def test_files_are_interleaved(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        (tmp_path / f"{name}.txt").write_text("\n".join(f"{name} {line}" for line in lines(400, number)))
    texts = generate_real_fake_texts(open_corpus([tmp_path]), "", seed=1, buffer=50, lower=True)
    real = [text for text, label in islice(texts, 300) if label]
    assert min(Counter(text[0] for text in real).values()) > 25


def test_a_few_real_sentences_are_drawn_from_the_whole_corpus(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(["Hm!", *lines(12), "Hm!"]))
    counts: Counter[str] = Counter()
    for seed in range(400):
        texts = list(generate_real_fake_texts(open_corpus([tmp_path / "text.txt"]), "", seed=seed, limit=6))
        counts.update(text for text, label in texts if label)
    # Each of twelve sentences is one of the three with a chance of a quarter: 100 times, and 5 standard errors are 43.
    assert set(counts) == set(lines(12))
    assert all(57 < count < 143 for count in counts.values())
    tally: Counter[str] = Counter()
    list(generate_real_fake_texts(open_corpus([tmp_path / "text.txt"]), "", seed=1, limit=24, tally=tally))
    assert (tally["real"], tally["permuted"], tally["real, too short"]) == (12, 12, 2)


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acceptability.train.corpus._BLOCK", 1 << 14)

    def highest(count: int) -> int:
        path = tmp_path / f"{count}.txt"
        path.write_text("\n".join(lines(1000) * count))
        tracemalloc.start()
        try:
            made = sum(1 for _ in generate_real_fake_texts(open_corpus([path]), "", seed=1, buffer=200))
            assert made == 2000 * count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    highest(1)
    assert highest(8) < 1.2 * highest(1)


def test_it_is_a_stream(corpus: Corpus, lm: str) -> None:
    assert len(list(islice(generate_real_fake_texts(corpus, lm, seed=1, buffer=10), 5))) == 5


def test_bad_input_is_refused(tmp_path: Path, corpus: Corpus, text: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "short.txt").write_text("Hm!\nNo.\n")
    (tmp_path / "same.txt").write_text("no no no\nno no no\n")
    for name in ("empty", "short"):
        with pytest.raises(CorpusError, match="no sentence of 3 to 60 words"):
            list(generate_real_fake_texts(open_corpus([tmp_path / f"{name}.txt"]), "", seed=1))
    with pytest.raises(CorpusError, match="in none of the sentences can words change places"):
        list(generate_real_fake_texts(open_corpus([tmp_path / "same.txt"]), "", seed=1))
    with pytest.raises(UnknownName, match="no model named 'nothing'"):
        generate_real_fake_texts(corpus, "nothing", seed=1)
    with pytest.raises(ModelError, match="not from this one"):
        generate_real_fake_texts(corpus, "uniform", seed=1)
    for count in (0, 1, -5):
        with pytest.raises(SpecError, match="at least two sentences"):
            generate_real_fake_sentences([text], count)
    with pytest.raises(SpecError, match="seed is -1"):
        generate_real_fake_texts(corpus, "", seed=-1)
    with pytest.raises(SpecError, match="expected 2 or more"):
        generate_real_fake_texts(corpus, "", seed=1, buffer=0)


def test_a_suite_is_written_whole_or_not_at_all(tmp_path: Path, text: Path, lm: str) -> None:
    out = tmp_path / "made.jsonl"
    tally = write_real_fake([text], lm, out, 101, seed=1)
    suite = load_suite(str(out))
    assert Counter(each.tags["kind"] for each in suite.sentences) == {"real": 51, "sampled": 25, "permuted": 25}
    assert (tally["real"], tally["sampled"], tally["permuted"]) == (51, 25, 25)
    assert {each.label for each in suite.sentences if each.tags["kind"] == "real"} == {1}
    assert list(json.loads(out.read_text().splitlines()[0])) == ["id", "text", "label", "tags"]
    with pytest.raises(CorpusError, match="gives 1,800 sentences, real and fake; 5,000 were requested"):
        write_real_fake([text], "", tmp_path / "more.jsonl", 5000, seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.jsonl"]
    for wrong in (tmp_path / "made.csv", tmp_path / "nowhere" / "made.jsonl"):
        with pytest.raises(SuiteError):
            write_real_fake([text], "", wrong, 10, seed=1)
