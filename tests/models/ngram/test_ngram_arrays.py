"""Models of the kind ngram that were trained here: folders of sorted arrays."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_model
from acceptability.errors import ModelError, QueryError
from acceptability.models.ngram.trained import TrainedNGram, read_ngram_table
from acceptability.train import train
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.types import Query
from tiny import SENTENCES, TEXTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trained")
    (place / "text.txt").write_text("\n".join(SENTENCES))
    train(NGramRecipe(vocabulary=25), [place / "text.txt"], place / "m")
    return place / "m"


def run_model(model, text: str, **kwargs: object):
    return model.run(model.encode([Query(text, **kwargs)]))[0]


def test_batching_changes_nothing(folder: Path) -> None:
    model = load_model(f"ngram:{folder}(eos=True)")
    assert isinstance(model, TrainedNGram)
    together = model.run(model.encode([Query(text) for text in TEXTS if text != "Cats"]))
    for text, each in zip([text for text in TEXTS if text != "Cats"], together, strict=True):
        assert each.logprobs.tolist() == run_model(model, text).logprobs.tolist()
        assert [each.text[start:end] for start, end in each.offsets] == [*each.tokens[:-1], ""]


def test_context_and_target(folder: Path) -> None:
    model = load_model(f"ngram:{folder}")
    whole = run_model(model, "The cats sleep.")
    after = run_model(model, "cats sleep.", context="The")
    assert after.logprobs.tolist() == whole.logprobs.tolist()[1:]
    assert after.offsets == ((0, 4), (5, 10), (10, 11))
    part = run_model(model, "The cats sleep.", target=(4, 8))
    assert (part.tokens, part.logprobs.tolist()) == (("cats",), whole.logprobs.tolist()[1:2])
    with pytest.raises(QueryError, match="no word in its target"):
        run_model(model, "The cats sleep.", target=(3, 4))


def test_an_unknown_word_has_its_policy(folder: Path) -> None:
    own, number, uniform = (
        load_model(f"ngram:{folder}{each}") for each in ("", "(unknown=-50)", "(unknown='uniform')")
    )
    assert run_model(number, "The zebra .").logprobs[1] == -50
    assert run_model(uniform, "The zebra .").logprobs[1] == pytest.approx(-math.log(28))
    # The history restarts after a word without <unk>.
    table = read_ngram_table(folder / "model.safetensors")
    assert run_model(number, "The zebra .").logprobs[2] == table.orders[0].logprobs[own.vocabulary.index["."]]
    assert run_model(own, "The zebra .").logprobs[1] not in (-50, pytest.approx(-math.log(28)))
    for model, told in ((own, "unknown='spelling'"), (number, "unknown=-50.0"), (uniform, "unknown='uniform'")):
        assert told in model.signature
    with pytest.raises(QueryError, match="knows none of its words"):
        run_model(own, "zebra gnu")
    with pytest.raises(QueryError, match="no word in it"):
        run_model(own, " ")


def test_the_start_symbol(folder: Path) -> None:
    with_start, without = load_model(f"ngram:{folder}"), load_model(f"ngram:{folder}(bos=None)")
    table = read_ngram_table(folder / "model.safetensors")
    first = table.orders[0].logprobs[without.vocabulary.index["The"]]
    assert run_model(without, "The cats").logprobs[0] == first
    assert run_model(with_start, "The cats").logprobs[0] != first
    assert "bos=None" in without.signature
    with pytest.raises(ModelError, match="bos is 'x'"):
        load_model(f"ngram:{folder}(bos='x')")


def test_the_signature_follows_the_content_and_reads_back(folder: Path, tmp_path: Path) -> None:
    signature = load_model(f"ngram:{folder}").signature
    moved = tmp_path / folder.name
    shutil.copytree(folder, moved)
    assert load_model(f"ngram:{moved}").signature == signature
    version = signature.partition("@")[2].partition("(")[0]
    assert load_model(f"ngram:{moved}@{version}").signature == signature
    text = (moved / "vocabulary.json").read_text()
    (moved / "vocabulary.json").write_text(text.replace('"The"', '"THE"'))
    assert load_model(f"ngram:{moved}").signature != signature
    with pytest.raises(ModelError, match="it is another model"):
        load_model(f"ngram:{moved}@{version}")


def test_the_folder_defines_how_text_is_split(folder: Path) -> None:
    for option in ("units='words'", "lower=True"):
        with pytest.raises(ModelError, match="defines how text is split into words"):
            load_model(f"ngram:{folder}({option})")


def test_folders_that_are_no_model(folder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    with pytest.raises(ModelError, match="has no model.safetensors"):
        load_model(f"ngram:{tmp_path}")

    def broken(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    cut = broken("cut") / "model.safetensors"
    cut.write_bytes(cut.read_bytes()[:-10])
    other = broken("other") / "model.safetensors"
    save_file({"weights": np.zeros(3)}, other)
    odd = broken("odd") / "model.safetensors"
    arrays = load_file(odd)
    save_file(arrays | {"words_2": arrays["words_2"][:-1]}, odd, metadata={"format": "acceptability n-gram 1"})
    for place, message in ((cut, "cannot be read"), (other, "it is no n-gram model"), (odd, "do not fit")):
        with pytest.raises(ModelError, match=message):
            run_model(load_model(f"ngram:{place.parent}"), "The cats")
    for content, message in (
        ("{", "is no vocabulary"),
        ('{"words_by": "split", "lower": false, "words": ["a"]}', "begins with <unk>"),
        ('{"words_by": "no", "lower": false, "words": ["<unk>", "<s>", "</s>"]}', "no rule 'no'"),
        ('{"words_by": "split", "lower": false, "words": ["<unk>", "<s>", "</s>", "a", "a"]}', "has a word twice"),
        (
            '{"words_by": "split", "lower": false, "words": ["<unk>", "<s>", "</s>", "The"]}',
            "belong to different models",
        ),
    ):
        place = broken(f"words{len(content)}{message[:2]}")
        (place / "vocabulary.json").write_text(content)
        with pytest.raises(ModelError, match=message):
            run_model(load_model(f"ngram:{place}"), "The cats")


def test_fewer_bits_change_little(folder: Path, tmp_path: Path) -> None:
    whole = run_model(load_model(f"ngram:{folder}"), SENTENCES[1]).logprobs
    for bits, tolerance in ((16, 0.01), (8, 0.02)):
        train(NGramRecipe(vocabulary=25, bits=bits), [folder.parent / "text.txt"], tmp_path / str(bits))
        found = run_model(load_model(f"ngram:{tmp_path / str(bits)}"), SENTENCES[1]).logprobs
        np.testing.assert_allclose(found, whole, atol=tolerance)
