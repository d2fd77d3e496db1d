"""Recipes for classifiers over words: the same seed gives the same bytes, vectors of every kind, transfer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import Sentence, Suite, load_model
from acceptability.errors import MissingExtra, ModelError, TrainError
from acceptability.models.sentence_classifier import SentenceClassifier
from acceptability.models.sentence_networks import network_of, read_network
from acceptability.models.sentence_shape import Shape
from acceptability.train.classifiers import Examples, read_examples, teach
from acceptability.train.classifiers.cutting import Cutting
from acceptability.train.classifiers.inputs import inputs_of
from acceptability.train.classifiers.loop import Lesson, Pace, batches, judged, learn
from acceptability.train.classifiers.reading import Numbers, States, texts_of
from acceptability.train.classifiers.words import Cbow, Pooling, sampled
from acceptability.train.tick import Tick
from acceptability.types import Query
from tiny import TEXTS, make_recurrent

SMALL = {"embedding": 8, "hidden": 8, "batch": 16, "epochs": 4, "patience": 0, "rate": 0.02}
NOUNS, VERBS = ("cat", "dog", "linguist", "bird", "child"), ("sleeps", "runs", "reads", "sings", "thinks")


def made(reverse: bool = True) -> Suite:
    """Sentences whose words stand in the right order, or in the wrong one."""
    sentences = []
    for number in range(120):
        noun, verb = NOUNS[number % 5], VERBS[number // 5 % 5]
        label = number % 2
        words = ["the", noun, verb, *["again"] * (number % 3)]
        sentences.append(Sentence(str(number), " ".join(words if label or not reverse else words[::-1]) + ".", label))
    return Suite("made", tuple(sentences))


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def glove(folder: Path) -> str:
    random = np.random.default_rng(1)
    words = ["the", *NOUNS, *VERBS, ".", "walks"]
    path = folder / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, random.normal(size=6).round(3)))}\n" for word in words))
    return str(path)


def judgements(folder: Path, texts: list[str]) -> list[float]:
    model = load_model(f"classifier:{folder}")
    return [each.logits[1] for each in model.run(model.encode([Query(text) for text in texts]))]


@pytest.mark.parametrize("recipe", [Cbow(**SMALL), Pooling(**SMALL, layers=2, top=4)], ids=lambda recipe: recipe.kind)
def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads(recipe: Cbow | Pooling, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(threads)
        teach(recipe, [made()], tmp_path / str(threads))
        found.append((tmp_path / str(threads) / "model.safetensors").read_bytes())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert found[0] == found[1]
    teach(type(recipe)(**{**vars(recipe), "seed": 2}), [made()], tmp_path / "other")
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != found[0]


def test_the_generator_of_others_is_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    teach(Pooling(**SMALL), [made()], tmp_path / "made")
    assert torch.equal(torch.get_rng_state(), before)


def test_pooling_learns_the_order_of_words_and_cbow_cannot(tmp_path: Path) -> None:
    ticks: list[Tick] = []
    told = teach(Pooling(**{**SMALL, "epochs": 12}), [made()], tmp_path / "pooling", tell=ticks.append)
    assert told["results"]["held out"] == {"mcc": 1.0, "accuracy": 1.0}
    good, bad = judgements(tmp_path / "pooling", ["the bird reads.", ".reads bird the"])
    assert good > 0 > bad
    assert [(tick.stage, tick.done, tick.total) for tick in ticks[:2]] == [("epochs", 1, 12), ("epochs", 2, 12)]
    blind = teach(Cbow(**SMALL), [made()], tmp_path / "cbow")
    assert abs(blind["results"]["held out"]["mcc"]) < 0.5


def test_the_folder_and_its_facts(tmp_path: Path) -> None:
    told = teach(Pooling(**SMALL, vectors=glove(tmp_path)), [made()], tmp_path / "made")
    assert set(files(tmp_path / "made")) == {"model.safetensors", "vocabulary.json", "recipe.json"}
    facts = told["facts"]
    assert (facts["words known"], facts["numbers of a word"]) == (13, 6)
    # Of 13 different words 'again' has no vector.
    assert facts["share of different words known"] == round(12 / 13, 4)
    assert facts["file of vectors"].startswith("glove.txt@")
    assert json.loads((tmp_path / "made" / "recipe.json").read_text())["recipe"]["hidden"] == 8


def test_vectors_of_a_file_stay_as_they_are_and_learnt_ones_do_not(tmp_path: Path) -> None:
    teach(Cbow(**SMALL, vectors=glove(tmp_path)), [made()], tmp_path / "fixed")
    table = read_network(tmp_path / "fixed", "cpu").inputs.table.detach().numpy()
    lines = Path(glove(tmp_path)).read_text().splitlines()
    assert table[3:].tolist() == np.array([line.split()[1:] for line in lines], np.float32).tolist()
    assert table[0] == pytest.approx(table[3:].mean(0), abs=1e-6)
    inputs = inputs_of("", [each.text for each in made().sentences], Cutting(least=2), 8)
    assert inputs.table is None


def test_a_word_that_only_the_file_knows_is_known_and_a_rare_one_is_not(tmp_path: Path) -> None:
    teach(Pooling(**SMALL, vectors=glove(tmp_path)), [made()], tmp_path / "fixed")
    walks, sleeps = judgements(tmp_path / "fixed", ["the cat walks.", "the cat sleeps."])
    assert walks != sleeps
    inputs = inputs_of("", ["a b a c", "c d"], Cutting(least=2), 8)
    assert inputs.vocabulary.words[3:] == ("a", "c")
    assert inputs.facts["share of running words known"] == round(4 / 6, 4)
    with pytest.raises(TrainError, match="no word stands 3 times"):
        inputs_of("", ["a b a c", "c d"], Cutting(least=3), 8)


@pytest.mark.parametrize("prefix", ["elmo:recurrent:", "recurrent:"])
def test_vectors_of_a_language_model(prefix: str, tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm", directions=2)
    suite = Suite(
        "made", tuple(Sentence(str(n), text, n % 2) for n, text in enumerate([*TEXTS * 3, *(t[:-1] for t in TEXTS)]))
    )
    for name in ("one", "two"):
        told = teach(Pooling(**SMALL, vectors=f"{prefix}{lm}"), [suite], tmp_path / name)
    one, two = ({**files(tmp_path / name), "recipe.json": b""} for name in ("one", "two"))
    assert one == two
    if prefix == "recurrent:":
        assert told["facts"]["numbers of a word"] == 6
        return
    assert told["facts"]["numbers of a word"] == 20
    assert one["lm/model.safetensors"] == (lm / "model.safetensors").read_bytes()
    # What is learnt from kept states is what is later said from fresh ones.
    held = told["results"]["held out"]
    assert set(held) == {"mcc", "accuracy"}
    assert np.isfinite(judgements(tmp_path / "one", TEXTS)).all()


def test_states_that_find_no_room_are_computed_for_each_batch(tmp_path: Path) -> None:
    model = load_model(f"recurrent:{make_recurrent(tmp_path / 'lm', directions=2)}")
    rows = texts_of([each.numbers for each in model.encode([Query(text) for text in TEXTS])])
    kept, fresh = States(rows, model.net), States(rows, model.net, room=0)
    assert kept.kept is not None
    assert fresh.kept is None
    net = network_of(Shape("pooling", "max", 10, mixed=2, directions=2, layers=1, hidden=4)).eval()
    for places in ([0, 3, 1], [5], list(range(len(TEXTS)))):
        one, other = (net(*source.batch(places)) for source in (kept, fresh))
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-6)


@pytest.mark.parametrize("vectors", ["", "elmo"])
def test_a_frozen_encoder_keeps_its_weights_and_gets_a_hidden_layer(vectors: str, tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm") if vectors else None
    teach(Pooling(**SMALL, vectors=f"elmo:recurrent:{lm}" if lm else ""), [made()], tmp_path / "first")
    recipe = Pooling(encoder=str(tmp_path / "first"), top=7, epochs=3, rate=0.01)
    for name in ("second", "again"):
        told = teach(recipe, [made(reverse=False)], tmp_path / name)
    first, second = (read_network(tmp_path / name, "cpu").state_dict() for name in ("first", "second"))
    for name in first:
        if not name.startswith("head."):
            assert torch.equal(first[name], second[name])
    assert second["head.hidden.weight"].shape == (7, 16)
    assert told["facts"]["parameters"] == 7 * 16 + 7 + 7 + 1
    assert "encoder" in told["facts"]
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("second", "again"))
    assert one == two
    assert len(judgements(tmp_path / "second", ["The cat sleeps."])) == 1


def test_what_is_said_in_the_folder_is_what_was_held_out(tmp_path: Path) -> None:
    from acceptability.measures.classification import matthews
    from acceptability.train.classifiers import held_out

    told = teach(Pooling(**{**SMALL, "epochs": 2}), [made()], tmp_path / "made")
    _, held = held_out(read_examples([made()]))
    found = np.array(judgements(tmp_path / "made", list(held.texts)))
    labels = np.array(held.labels, np.float64)
    assert told["results"]["held out"]["mcc"] == pytest.approx(matthews((found > 0).astype(float), labels))
    assert told["results"]["held out"]["accuracy"] == pytest.approx(((found > 0) == (labels > 0)).mean())


def lesson(rows: list[list[int]], labels: list[int]) -> Lesson:
    return Lesson(Numbers(texts_of(rows), "cpu"), np.array(labels, np.float64))


def test_the_loop_stops_when_it_learns_no_more_and_keeps_the_best() -> None:
    rows, labels = [[3, 4], [4, 3], [3, 3, 4], [4, 4, 3]], [1, 0, 1, 0]
    torch.manual_seed(1)
    net = network_of(Shape("pooling", "max", 4, words=5, layers=1, hidden=4))
    # Held-out labels are turned round: the better it learns, the worse it gets.
    held = lesson(rows, [1 - label for label in labels])
    found = learn(net, lesson(rows, labels), held, Pace(0.05, 2, epochs=200, patience=3, seed=1), lambda _: None)
    assert found.stopped_early
    assert found.epochs == found.best + 3
    kept = ((judged(net, held.source) > 0) == (held.labels > 0)).mean()
    assert found.accuracy == kept


def test_every_sentence_is_read_once_an_epoch_with_others_of_its_length() -> None:
    lengths = np.random.default_rng(1).integers(1, 40, 1000)
    random = np.random.default_rng(2)
    first, second = batches(lengths, 16, random), batches(lengths, 16, random)
    assert sorted(place for some in first for place in some) == list(range(1000))
    assert first != second
    assert np.mean([np.ptp(lengths[some]) for some in first]) < 3


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    net = network_of(Shape("cbow", "sum", 4, words=5))
    one = lesson([[3, 4], [4, 3, 3]], [1, 0])
    with pytest.raises(TrainError, match="choose a lower learning rate"):
        learn(net, one, one, Pace(float("inf"), 2, epochs=3, patience=0, seed=1), lambda _: None)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drawn_recipes_lie_in_the_paper_s_ranges(seed: int) -> None:
    drawn = sampled(seed, Pooling(vectors="glove.txt"))
    assert drawn == sampled(seed, Pooling(vectors="glove.txt"))
    assert 500 <= drawn.hidden <= 1500
    assert 1 <= drawn.layers <= 5
    assert 1e-5 <= drawn.rate <= 3e-3
    assert drawn.dropout in (0.2, 0.5)
    assert (drawn.vectors, drawn.seed, drawn.patience) == ("glove.txt", seed, 4)
    above = sampled(seed, Pooling(encoder="real-fake", top=5))
    assert 20 <= above.top <= 1200
    assert 1e-5 <= above.rate <= 1e-2
    assert (above.hidden, above.patience) == (Pooling().hidden, 20)
    assert 20 <= sampled(seed, Cbow()).hidden <= 1200


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hidden": 0}, "hidden is 0; expected a whole number from 1"),
        ({"patience": -1}, "patience is -1"),
        ({"dropout": 1.0}, "dropout is 1.0; expected a share"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"words": "letters"}, "words is 'letters'; expected one of"),
        ({"encoder": "x", "vectors": "y", "top": 1}, "vectors and encoder are both given"),
        ({"encoder": "x"}, "such as top=200"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        Pooling(**options)


def test_wrong_places_are_named(tmp_path: Path, recurrent_dir: Path) -> None:
    for recipe, problem in (
        (Cbow(vectors="nowhere.txt"), "no file of word vectors nowhere.txt"),
        (Cbow(vectors="elmo:causal:gpt2"), "only a model that was trained here"),
        (Pooling(encoder=str(recurrent_dir), top=3), "no classifier that was taught here"),
    ):
        with pytest.raises((TrainError, ModelError), match=problem):
            teach(recipe, [made()], tmp_path / "made")
    teach(Cbow(**SMALL), [made()], tmp_path / "cbow")
    with pytest.raises(TrainError, match="of the kind 'cbow'; expected a pooling"):
        teach(Pooling(encoder=str(tmp_path / "cbow"), top=3), [made()], tmp_path / "made")


def test_sentences_without_words_or_with_too_many_are_named(tmp_path: Path) -> None:
    sentences = [*made().sentences, Sentence("long", "the " * 600, 1)]
    with pytest.raises(TrainError, match=r"has 600 words; a classifier reads from 1 to 512"):
        Cbow(**SMALL).fit(Examples(tuple(sentences)), Examples(made().sentences), tmp_path, lambda _: None)
    sentences[-1] = Sentence("none", "…", 1)
    with pytest.raises(TrainError, match="'…' has 0 words"):
        Cbow(**SMALL, words="words").fit(
            Examples(tuple(sentences)), Examples(made().sentences), tmp_path, lambda _: None
        )


def test_the_command_teaches_and_the_model_is_ours(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from acceptability.cli import app

    rows = "".join(f"{each.text}\t{each.label}\n" for each in made().sentences)
    (tmp_path / "mine.tsv").write_text("sentence\tlabel\n" + rows)
    options = [f"--set={name}={value}" for name, value in SMALL.items()]
    done = CliRunner().invoke(
        app, ["train", "cbow", "--data", str(tmp_path / "mine.tsv"), "--out", str(tmp_path / "c"), *options]
    )
    assert done.exit_code == 0, done.output
    assert f"classifier:{tmp_path / 'c'}" in done.stdout
    assert isinstance(load_model(f"classifier:{tmp_path / 'c'}"), SentenceClassifier)


def test_recipes_can_be_listed_without_torch_and_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; sys.modules['torch'] = None; import acceptability.train.classifiers.encoders as e; print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr("acceptability.train.classifiers.words.is_importable", lambda name: name != "torch")
    with pytest.raises(MissingExtra, match="'train cbow' needs torch and safetensors"):
        teach(Cbow(**SMALL), [made()], tmp_path / "made")
