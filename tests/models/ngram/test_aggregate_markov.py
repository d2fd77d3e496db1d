from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_model
from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models.ngram.aggregate_markov import (
    AggregateMarkovTable,
    read_aggregate_markov,
    serialize_aggregate_markov,
)
from acceptability.text.words import SPECIAL_WORDS, Vocabulary
from acceptability.types import Query
from tiny import TEXTS

WORDS = (*SPECIAL_WORDS, "cats", "sleep", ".")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, of which the numbers can be worked out by hand; the last row stands before all words."""
    histories = [[0.5, 0.5], [1, 0], [0, 1], [0.25, 0.75], [0, 1], [0.5, 0.5], [0.5, 0.5]]
    followers = [[0.1, 0.2], [0, 0], [0.1, 0.2], [0.5, 0.1], [0.2, 0.1], [0.1, 0.4]]
    made = tmp_path / "tiny"
    made.mkdir()
    (made / "model.safetensors").write_bytes(
        serialize_aggregate_markov(AggregateMarkovTable(np.array(histories), np.array(followers)))
    )
    (made / "vocabulary.json").write_bytes(Vocabulary(WORDS, "split", lower=True).to_json())
    return made


def run_model(model: str, *queries: Query) -> list[tuple[tuple[str, ...], list[float]]]:
    loaded = load_model(model)
    return [(each.tokens, np.exp(each.logprobs).tolist()) for each in loaded.run(loaded.encode(queries))]


def test_probabilities_by_hand(folder: Path) -> None:
    # cats after <s>: 1·0.5; sleep after cats: 0.25·0.2 + 0.75·0.1; . after sleep: 0.4; </s> after .: 0.5·0.1 + 0.5·0.2
    (words, probs), (_, unknown) = run_model(
        f"aggregate-markov:{folder}(eos=True, unknown='<unk>')", Query("Cats sleep."), Query("Cats purr.")
    )
    assert words == ("cats", "sleep", ".", "</s>")
    assert probs == pytest.approx([0.5, 0.125, 0.4, 0.15])
    # <unk> after cats: 0.25·0.1 + 0.75·0.2; . after <unk>: 0.5·0.1 + 0.5·0.4
    assert unknown == pytest.approx([0.5, 0.175, 0.25, 0.15])


def test_without_bos_the_first_word_has_no_history(folder: Path) -> None:
    for _, probs in run_model(f"aggregate-markov:{folder}(bos=None)", Query("Cats sleep."), Query("cats sleep.")):
        assert probs == pytest.approx([0.3, 0.125, 0.4])


@pytest.mark.parametrize(("unknown", "expected"), [("'uniform'", 1 / 6), ("-2.0", math.exp(-2))])
def test_an_unknown_word_with_a_probability_of_its_own_ends_the_history(
    folder: Path, unknown: str, expected: float
) -> None:
    ((_, probs),) = run_model(f"aggregate-markov:{folder}(unknown={unknown})", Query("Cats purr."))
    assert probs == pytest.approx([0.5, expected, 0.25])


def test_a_context_conditions_and_a_target_is_scored_alone(folder: Path) -> None:
    model = f"aggregate-markov:{folder}(eos=True)"
    after, target = run_model(model, Query("sleep.", context="Cats"), Query("Cats sleep.", target=(5, 10)))
    assert after == (("sleep", ".", "</s>"), pytest.approx([0.125, 0.4, 0.15]))
    assert target == (("sleep",), pytest.approx([0.125]))


def test_batching_changes_nothing(aggregate_markov_dir: Path, monkeypatch) -> None:
    model = f"aggregate-markov:{aggregate_markov_dir}(eos=True)"
    alone = [run_model(model, Query(text))[0] for text in TEXTS]
    assert run_model(model, *map(Query, TEXTS)) == alone
    monkeypatch.setattr("acceptability.models.ngram.aggregate_markov.CHUNK_BYTES", 1)
    assert run_model(model, *map(Query, TEXTS)) == alone


def test_a_start_symbol_in_a_text_is_not_predicted(tmp_path: Path, folder: Path) -> None:
    (folder / "vocabulary.json").write_bytes(Vocabulary(WORDS, "spaces", lower=True).to_json())
    ((_, probs),) = run_model(f"aggregate-markov:{folder}", Query("cats <s> cats"))
    assert probs == pytest.approx([0.5, 1.0, 0.5])


def test_the_signature_names_content_and_options_and_opens_the_folder(folder: Path) -> None:
    signature = load_model(f"aggregate-markov:{folder}").signature
    place, _, options = signature.partition("(")
    assert place.startswith("aggregate-markov:tiny@")
    assert options == "units='split', lower=True, bos='<s>', eos=False, unknown='spelling')"
    version = place.rpartition("@")[2]
    assert load_model(f"aggregate-markov:{folder}@{version}").signature == signature
    with pytest.raises(ModelError, match=f"has the content hash {version}, not 123"):
        load_model(f"aggregate-markov:{folder}@123")


def test_what_cannot_be_opened_says_why(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has no model.safetensors"):
        load_model(f"aggregate-markov:{tmp_path / 'nowhere'}")
    with pytest.raises(ModelError, match="bos is 'x'; expected '<s>' or None"):
        load_model(f"aggregate-markov:{folder}(bos='x')")
    with pytest.raises(ModelError, match="unknown is 1"):
        load_model(f"aggregate-markov:{folder}(unknown=1)")
    with pytest.raises(QueryError, match="knows none of its words"):
        run_model(f"aggregate-markov:{folder}", Query("Dogs purr"))


def test_files_of_different_models_are_refused(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "vocabulary.json").write_bytes(Vocabulary(WORDS[:-1], "split", lower=True).to_json())
    with pytest.raises(ModelError, match="belong to different models"):
        run_model(f"aggregate-markov:{other}", Query("Cats sleep"))
    with pytest.raises(ModelError, match="acceptability aggregate Markov 1, not acceptability n-gram 1"):
        run_model(f"ngram:{folder}", Query("Cats sleep"))
    (other / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9])
    with pytest.raises(ModelError, match="cannot be read as an aggregate Markov model"):
        read_aggregate_markov(other / "model.safetensors")


def test_tables_of_different_words_or_classes_are_refused() -> None:
    for histories, followers in ((np.ones((3, 2)), np.ones((3, 2))), (np.ones((4, 2)), np.ones((3, 1)))):
        with pytest.raises(ValueError, match="two tables have different words or classes"):
            AggregateMarkovTable(histories, followers)


def test_weights_of_another_kind_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.ones(3, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="holds other weights, not acceptability aggregate Markov 1"):
        read_aggregate_markov(tmp_path / "model.safetensors")


def test_it_says_what_to_install(folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtra, match="pip install safetensors"):
        read_aggregate_markov(folder / "model.safetensors")


def test_it_needs_no_torch(folder: Path) -> None:
    import subprocess

    code = (
        "import sys; from acceptability import load_model, Query; "
        f"m = load_model('aggregate-markov:{folder}'); m.run(m.encode([Query('Cats sleep.')])); "
        "print({'torch', 'scipy'} & set(sys.modules) or 'none')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "none"
