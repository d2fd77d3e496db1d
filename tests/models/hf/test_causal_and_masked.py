"""Causal, masked and classifying transformers against plain loops written here."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_model
from acceptability.engine.local import run_queries
from acceptability.errors import MissingExtra, ModelError, QueryError, SpecError
from acceptability.outputs import TextColumns
from acceptability.types import Query
from tiny import TEXTS

torch = pytest.importorskip("torch")


def score_texts(model, texts: list[str]) -> list[float]:
    queries = [Query(text) for text in texts]
    scores = {}
    for batch in run_queries(model, queries, lambda _: False):
        scores |= {index: float(output.logprobs.sum()) for index, output in batch}
    return [scores[index] for index in range(len(texts))]


def plain_causal(folder: Path, text: str, *, bos: bool = True) -> list[float]:
    """One text, no batch, no padding, a full log-softmax."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = ([tokenizer.bos_token_id] if bos else []) + tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        table = net(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(table[position - 1, ids[position]]) for position in range(1, len(ids))]


def plain_masked(folder: Path, text: str, *, word_l2r: bool) -> list[float]:
    """One mask, one forward pass."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForMaskedLM.from_pretrained(folder).eval()
    encoding = tokenizer(text)
    ids, words = encoding["input_ids"], encoding.word_ids()
    output = []
    for position in range(1, len(ids) - 1):
        masked_ids = list(ids)
        for later in range(position, len(ids) - 1):
            if later == position or (word_l2r and words[later] == words[position]):
                masked_ids[later] = tokenizer.mask_token_id
        with torch.no_grad():
            output.append(float(net(torch.tensor([masked_ids])).logits[0, position].log_softmax(-1)[ids[position]]))
    return output


@pytest.fixture(params=["causal", "masked", "masked_l2r"])
def spec_and_plain(request, causal_dir: Path, masked_dir: Path) -> tuple[str, object]:
    if request.param == "causal":
        return f"causal:{causal_dir}", lambda text: plain_causal(causal_dir, text)
    l2r = request.param == "masked_l2r"
    variant = "word_l2r" if l2r else "pll"
    return f"masked:{masked_dir}(variant={variant!r})", lambda text: plain_masked(masked_dir, text, word_l2r=l2r)


def test_scores_equal_a_plain_loop_alone_in_batches_and_in_any_order(spec_and_plain) -> None:
    name, plain = spec_and_plain
    expected = [sum(plain(text)) for text in TEXTS]
    model = load_model(name)
    assert len({round(score, 3) for score in expected}) == len(TEXTS), "a test that cannot fail"
    assert [score_texts(model, [text])[0] for text in TEXTS] == pytest.approx(expected, abs=1e-4)
    for seed in range(5):
        order = random.Random(seed).sample(range(len(TEXTS)), k=len(TEXTS))
        output = score_texts(model, [TEXTS[index] for index in order])
        assert output == pytest.approx([expected[index] for index in order], abs=1e-4)
    many = score_texts(model, TEXTS * 40)
    assert many == pytest.approx(expected * 40, abs=1e-4)


def test_whole_texts_in_columns_are_those_of_single_queries(spec_and_plain, monkeypatch) -> None:
    model = load_model(spec_and_plain[0])
    queries = [Query(text) for text in [*TEXTS, "zzxq qqq"]]
    columns = model.encode(queries)
    assert isinstance(columns, TextColumns)
    # A query with a target sends the whole window through the objects.
    objects = model.encode([*queries, Query(TEXTS[0], target=(0, 3))])[:-1]
    assert [part.ids for part in columns] == [list(each.ids) for each in objects]
    assert columns.sizes == [each.size for each in objects]
    together, apart, joined = model.run(columns), model.run(objects), model.run(list(columns))
    for one, other, third in zip(together, apart, joined, strict=True):
        assert (one.text, one.tokens, one.offsets, one.unknown) == (
            other.text,
            other.tokens,
            other.offsets,
            other.unknown,
        )
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
        assert third.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_the_padding_side_of_the_tokenizer_changes_nothing(spec_and_plain, tmp_path: Path) -> None:
    name, _ = spec_and_plain
    kind, _, location = name.partition(":")
    folder, bracket, options = location.partition("(")
    other = tmp_path / "left"
    shutil.copytree(folder, other)
    config = other / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"padding_side": "left"}))
    left, right = load_model(f"{kind}:{other}{bracket}{options}"), load_model(name)
    assert score_texts(left, TEXTS) == pytest.approx(score_texts(right, TEXTS), abs=1e-5)


def test_offsets_point_at_the_text(spec_and_plain) -> None:
    name, _ = spec_and_plain
    model = load_model(name)
    text = TEXTS[4]
    (output,) = model.run(model.encode([Query(text)]))
    pieces = [text[start:end] for start, end in output.offsets]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def test_the_start_token_is_a_choice_and_in_the_signature(causal_dir: Path) -> None:
    own, none = load_model(f"causal:{causal_dir}"), load_model(f"causal:{causal_dir}(bos=None)")
    assert "bos='<|end|>'" in own.signature
    assert "bos=None" in none.signature
    text = "The cats sleep."
    (with_bos,), (without,) = own.run(own.encode([Query(text)])), none.run(none.encode([Query(text)]))
    assert len(with_bos.tokens) == len(without.tokens) + 1
    assert without.logprobs.tolist() == pytest.approx(plain_causal(causal_dir, text, bos=False), abs=1e-4)
    with pytest.raises(ModelError, match="no token '<x>'"):
        load_model(f"causal:{causal_dir}(bos='<x>')").encode([Query(text)])


def test_a_missing_start_token_is_in_the_signature(causal_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(causal_dir, tmp_path / "m")
    config = tmp_path / "m" / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "bos_token": None}))
    assert "bos=None" in load_model(f"causal:{tmp_path / 'm'}").signature


def test_trailing_spaces_belong_to_the_word_before(causal_dir: Path) -> None:
    """A word's probability is that of its tokens, given that it begins, and that it ends after them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(causal_dir)
    net = AutoModelForCausalLM.from_pretrained(causal_dir).eval()
    text = "The cats sleep."
    ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    opening = [number for number, name in enumerate(names) if name.startswith("Ġ")] + [tokenizer.eos_token_id]
    with torch.no_grad():
        table = net(torch.tensor([ids])).logits[0].log_softmax(-1)
    ends = table[:, opening].logsumexp(-1)
    starts = [position for position in range(1, len(ids)) if names[ids[position]].startswith("Ġ")]
    words = [range(a, b) for a, b in zip([1, *starts], [*starts, len(ids)], strict=True)]
    expected = [
        float(sum(table[position - 1, ids[position]] for position in word) + ends[word[-1]])
        - (float(ends[word[0] - 1]) if word[0] in starts else 0.0)
        for word in words
    ]
    model = load_model(f"causal:{causal_dir}(spaces='trailing')")
    assert "spaces='trailing'" in model.signature
    (output,) = model.run(model.encode([Query(text)]))
    assert len(output.tokens) == len(ids) - 1
    ours = [float(sum(output.logprobs[position - 1] for position in word)) for word in words]
    assert ours == pytest.approx(expected, abs=1e-4)
    assert ours != pytest.approx([float(sum(table[p - 1, ids[p]] for p in word)) for word in words], abs=1e-2)
    (part,) = model.run(model.encode([Query(text, target=(4, 8))]))
    assert float(part.logprobs.sum()) == pytest.approx(expected[1], abs=1e-4)
    (ended,) = load_model(f"causal:{causal_dir}(spaces='trailing', eos=True)").run(
        load_model(f"causal:{causal_dir}(spaces='trailing', eos=True)").encode([Query(text)])
    )
    assert ended.logprobs[:-1].tolist() == pytest.approx(output.logprobs.tolist(), abs=1e-4)
    assert ended.logprobs[-1] == pytest.approx(float(table[-1, tokenizer.eos_token_id] - ends[-1]), abs=1e-4)


def test_a_preset_frames_and_takes_no_other_frame(causal_dir: Path) -> None:
    plain, theirs = load_model(f"causal:{causal_dir}"), load_model(f"causal:{causal_dir}(preset='lm-eval')")
    assert "preset='lm-eval'" in theirs.signature
    (output,) = theirs.run(theirs.encode([Query("The cats sleep.", target=(4, 8))]))
    assert output.offsets[0][0] in (3, 4)
    assert output.offsets[-1][1] == 8
    (whole,), (spaced,) = (
        theirs.run(theirs.encode([Query("The cats.")])),
        plain.run(plain.encode([Query(" The cats.")])),
    )
    assert whole.logprobs.tolist() == pytest.approx(spaced.logprobs.tolist(), abs=1e-5)
    assert whole.offsets[-1][1] == len("The cats.")
    with pytest.raises(ModelError, match="leave out bos and eos"):
        load_model(f"causal:{causal_dir}(preset='minicons', eos=True)")
    with pytest.raises(ModelError, match="expected one of 'minicons', 'lm-eval'"):
        load_model(f"causal:{causal_dir}(preset='other')")


def test_eos_true_scores_the_end_token(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}(eos=True)")
    (output,) = model.run(model.encode([Query("The cats sleep.")]))
    assert output.tokens[-1] == "<|end|>"
    assert output.offsets[-1] == (15, 15)


def test_a_context_conditions_but_is_not_scored(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}")
    (output,) = model.run(model.encode([Query("cats sleep.", context="The")]))
    assert sum(output.logprobs) == pytest.approx(
        sum(plain_causal(causal_dir, "The cats sleep.")[-len(output.tokens) :])
    )
    assert output.offsets[0][0] == 0


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_target_is_scored_alone(kind: str, causal_dir: Path, masked_dir: Path) -> None:
    folder = {"causal": causal_dir, "masked": masked_dir}[kind]
    model = load_model(f"{kind}:{folder}")
    text = "The cats that the dog chased have slept since noon."
    start = text.index("chased")
    (output,) = model.run(model.encode([Query(text, target=(start, start + 6))]))
    assert "".join(text[a:b] for a, b in output.offsets).strip() == "chased"
    if kind == "causal":
        (whole,) = model.run(model.encode([Query(text)]))
        kept = [lp for (a, b), lp in zip(whole.offsets, whole.logprobs, strict=True) if a < start + 6 and b > start]
        assert output.logprobs.tolist() == pytest.approx(kept, abs=1e-5)


def test_masked_target_tokens_are_masked_together(masked_dir: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    text, word = "A linguist was reading the unacceptable sentences again!", "unacceptable"
    start = text.index(word)
    model = load_model(f"masked:{masked_dir}")
    (output,) = model.run(model.encode([Query(text, target=(start, start + len(word)))]))
    tokenizer = AutoTokenizer.from_pretrained(masked_dir)
    net = AutoModelForMaskedLM.from_pretrained(masked_dir).eval()
    encoding = tokenizer(text, return_offsets_mapping=True)
    positions = [
        i for i, (a, b) in enumerate(encoding["offset_mapping"]) if a >= start and b <= start + len(word) and b > a
    ]
    assert len(positions) > 1
    masked_ids = [
        tokenizer.mask_token_id if i in positions else token_id for i, token_id in enumerate(encoding["input_ids"])
    ]
    with torch.no_grad():
        table = net(torch.tensor([masked_ids])).logits[0].log_softmax(-1)
    expected = [float(table[i, encoding["input_ids"][i]]) for i in positions]
    assert output.logprobs.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_text_that_is_too_long_is_an_error_that_names_it(spec_and_plain) -> None:
    name, _ = spec_and_plain
    with pytest.raises(QueryError, match="the model reads at most 64") as caught:
        load_model(name).encode([Query("fine"), Query("cats " * 100)])
    assert caught.value.index == 1


def test_unknown_tokens_only_is_an_error(masked_dir: Path) -> None:
    with pytest.raises(QueryError, match="knows none"):
        load_model(f"masked:{masked_dir}").encode([Query("猫 犬")])


def test_the_signature_needs_no_weights_and_follows_the_files(causal_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(causal_dir, tmp_path / causal_dir.name)
    copy = tmp_path / causal_dir.name
    first = load_model(f"causal:{copy}")
    signature = first.signature
    assert "forward" not in vars(first)
    assert load_model(f"causal:{causal_dir}").signature == signature
    config = copy / "config.json"
    config.write_text(config.read_text().replace("gelu_new", "gelu"))
    assert load_model(f"causal:{copy}").signature != signature


def test_precision_is_in_the_signature_and_the_device_is_not(causal_dir: Path) -> None:
    half = load_model(f"causal:{causal_dir}(dtype='bfloat16')")
    assert "bfloat16" in half.signature
    assert load_model(f"causal:{causal_dir}(device='cpu')").signature == load_model(f"causal:{causal_dir}").signature
    assert score_texts(half, TEXTS) == pytest.approx(score_texts(load_model(f"causal:{causal_dir}"), TEXTS), rel=0.05)


def test_pickle_weights_are_refused_unless_allowed(causal_dir: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "pickled"
    shutil.copytree(causal_dir, folder)
    net = AutoModelForCausalLM.from_pretrained(causal_dir)
    torch.save(net.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="allow_pickle=True"):
        load_model(f"causal:{folder}")
    trusted = load_model(f"causal:{folder}(allow_pickle=True)")
    assert score_texts(trusted, TEXTS) == pytest.approx(
        score_texts(load_model(f"causal:{causal_dir}"), TEXTS), abs=1e-5
    )


OWN_CODE = """
from pathlib import Path
from transformers import GPT2Config, GPT2LMHeadModel

Path({ran_file!r}).write_text("the code of the model ran")

class OwnConfig(GPT2Config):
    model_type = "own"

class Own(GPT2LMHeadModel):
    config_class = OwnConfig
"""


@pytest.fixture
def own_code(causal_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model with a module of its own, and the file that the module writes when it runs."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder, ran_file = tmp_path / "own", tmp_path / "ran_file"
    shutil.copytree(causal_dir, folder)
    (folder / "own.py").write_text(OWN_CODE.format(ran_file=str(ran_file)))
    config = json.loads((folder / "config.json").read_text())
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.Own"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": names}))
    return folder, ran_file


def test_code_of_a_model_runs_only_where_it_is_asked_for(
    own_code: tuple[Path, Path], causal_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, ran_file = own_code
    for kind in ("causal", "classifier"):
        with pytest.raises(ModelError, match="own needs Python code .* trust_remote_code=True"):
            score_texts(load_model(f"{kind}:{folder}"), TEXTS)
    assert not ran_file.exists()
    assert "own.py" not in caplog.text
    trusted = load_model(f"causal:{folder}(trust_remote_code=True)")
    assert score_texts(trusted, TEXTS) == pytest.approx(
        score_texts(load_model(f"causal:{causal_dir}"), TEXTS), abs=1e-5
    )
    assert ran_file.exists()
    assert "its own code may run: own.py" in caplog.text
    assert "trust_remote_code=True" in trusted.signature


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", '{"model_type": "gpt2", "n_embd": "x"}'),
        ("config.json", "[1, 2]"),
        ("config.json", '{"model_type": "gpt2", "torch_dtype": "evil"}'),
        ("config.json", '{"model_type": ["gpt2"]}'),
        ("tokenizer_config.json", '{"tokenizer_class": 7}'),
        ("tokenizer.json", "{}"),
        ("model.safetensors", "no weights"),
    ],
)
def test_damaged_files_are_reported_in_one_line(file: str, content: str, causal_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(causal_dir, folder)
    (folder / file).write_text(content)
    with pytest.raises(ModelError, match="cannot open the model damaged"):
        score_texts(load_model(f"causal:{folder}"), TEXTS)


def test_a_file_that_is_no_gguf_is_reported_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "short.gguf").write_bytes(b"GGUF\x03\0\0\0" + b"\1" * 16)
    with pytest.raises(ModelError, match="cannot open the model short.gguf"):
        score_texts(load_model(f"causal:{tmp_path / 'short.gguf'}"), TEXTS)


def test_a_token_with_a_huge_number_does_not_fill_the_memory(causal_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "huge"
    shutil.copytree(causal_dir, folder)
    about = json.loads((folder / "tokenizer.json").read_text())
    about["model"]["vocab"]["zyx"] = 4_294_967_290
    (folder / "tokenizer.json").write_text(json.dumps(about))
    with pytest.raises(ModelError, match="one has the number 4294967290: it is damaged"):
        score_texts(load_model(f"causal:{folder}"), TEXTS)


def test_other_code_is_another_model(own_code: tuple[Path, Path]) -> None:
    folder, _ = own_code
    before = load_model(f"causal:{folder}(trust_remote_code=True)").signature
    with (folder / "own.py").open("a") as code:
        code.write("# another line\n")
    assert load_model(f"causal:{folder}(trust_remote_code=True)").signature != before
    (folder / "own.py").write_text("raise AttributeError('gone')")
    with pytest.raises(ModelError, match=r"cannot open the model own in .*, or run the code that comes with it: gone"):
        score_texts(load_model(f"causal:{folder}(trust_remote_code=True)"), TEXTS)


def test_a_checkpoint_without_the_head_is_not_filled_with_random_weights(masked_dir: Path) -> None:
    model = load_model(f"classifier:{masked_dir}")
    with pytest.raises(ModelError, match=r"no weights for .*classifier"):
        model.run(model.encode([Query("The cats sleep.")]))


def test_a_causal_model_has_no_mask(causal_dir: Path) -> None:
    with pytest.raises(ModelError, match="no mask token"):
        load_model(f"masked:{causal_dir}").encode([Query("x")])


def test_a_classifier_gives_two_logits(classifier_dir: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = load_model(f"classifier:{classifier_dir}")
    output = {}
    for batch in run_queries(model, [Query(text) for text in TEXTS], lambda _: False):
        output |= dict(batch)
    tokenizer = AutoTokenizer.from_pretrained(classifier_dir)
    net = AutoModelForSequenceClassification.from_pretrained(classifier_dir).eval()
    for index, text in enumerate(TEXTS):
        with torch.no_grad():
            expected = net(**tokenizer(text, return_tensors="pt")).logits[0].tolist()
        assert list(output[index].logits) == pytest.approx(expected, abs=1e-4)
    flipped = load_model(f"classifier:{classifier_dir}(acceptable=0)")
    (flipped_output,) = flipped.run(flipped.encode([Query(TEXTS[0])]))
    assert flipped_output.logits == pytest.approx(output[0].logits[::-1], abs=1e-4)
    with pytest.raises(QueryError, match="whole sentences"):
        model.encode([Query("The cats", target=(0, 3))])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("causal:", "which model"),
        ("causal:/no/such/folder", "no such folder"),
        ("causal:no such model!", "no such folder"),
        ("causal:nobody/nothing", "Hub returned no files"),
    ],
)
def test_models_that_are_not_there(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("(dtype='int8')", "dtype is 'int8'"),
        ("(variant='x')", "variant"),
        ("(variant=word_l2r)", "put quotes round word_l2r"),
        ("(bos=1)", "bos"),
        ("(allow_pickle='no')", "allow_pickle is 'no'; expected True or False"),
        ("(trust_remote_code=1)", "trust_remote_code is 1; expected True or False"),
    ],
)
def test_wrong_options(options: str, message: str, masked_dir: Path) -> None:
    with pytest.raises((ModelError, SpecError), match=message):
        load_model(f"masked:{masked_dir}{options}")


def test_wrong_options_of_causal_models_and_classifiers(causal_dir: Path, classifier_dir: Path) -> None:
    for name in (
        f"causal:{causal_dir}(eos='no')",
        f"causal:{causal_dir}(bos=1)",
        f"classifier:{classifier_dir}(acceptable=1.0)",
    ):
        with pytest.raises(ModelError, match="expected"):
            load_model(name)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        load_model(f"causal:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="no \\*\\.safetensors"):
        load_model(f"causal:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="has no tokenizer"):
        load_model(f"causal:{tmp_path}").encode([Query("x")])


def test_damaged_weights(causal_dir: Path, tmp_path: Path) -> None:
    for number, size in enumerate((0, 5000)):
        folder = tmp_path / str(number)
        shutil.copytree(causal_dir, folder)
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:size])
        model = load_model(f"causal:{folder}")
        with pytest.raises(ModelError, match="cannot open the model"):
            model.run(model.encode([Query("The cats sleep.")]))


def test_a_masked_model_is_refused_as_a_causal_one(masked_dir: Path) -> None:
    """It would see the words that it is asked to predict."""
    model = load_model(f"causal:{masked_dir}(bos='[CLS]')")
    with pytest.raises(ModelError, match=r"no causal model.*write masked:"):
        model.run(model.encode([Query("The cats sleep.")]))


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there(device: str, causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}(device={device!r})")
    with pytest.raises(ModelError, match=f"the device '{device}' cannot be used here"):
        model.run(model.encode([Query("The cats sleep.")]))


def test_a_classifier_without_a_padding_token_takes_texts_one_by_one(causal_dir: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer, GPT2ForSequenceClassification

    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(causal_dir, num_labels=2)
    GPT2ForSequenceClassification(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(causal_dir).save_pretrained(tmp_path)
    model = load_model(f"classifier:{tmp_path}")
    together = model.run(model.encode([Query(text) for text in TEXTS]))
    for text, in_batch in zip(TEXTS, together, strict=True):
        (alone,) = model.run(model.encode([Query(text)]))
        assert in_batch.logits == pytest.approx(alone.logits, abs=1e-5)


def test_a_classifier_refuses_unknown_tokens_only(classifier_dir: Path) -> None:
    with pytest.raises(QueryError, match="knows none"):
        load_model(f"classifier:{classifier_dir}").encode([Query("猫 犬")])


def test_a_read_only_home_only_loses_the_cache(causal_dir: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "file"))
    assert "bos='<|end|>'" in load_model(f"causal:{causal_dir}").signature


def test_the_hub_is_read_at_a_commit(causal_dir: Path, tmp_path: Path, monkeypatch) -> None:
    """A cache laid out as the Hub's client does stands in for the Hub."""
    import huggingface_hub.constants as hub

    commit = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
    folder = tmp_path / "models--someone--tiny"
    shutil.copytree(causal_dir, folder / "snapshots" / commit)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    model = load_model("causal:someone/tiny")
    assert model.signature.startswith("causal:someone/tiny@607a30d783df(")
    assert score_texts(model, TEXTS) == pytest.approx(score_texts(load_model(f"causal:{causal_dir}"), TEXTS), abs=1e-5)
    assert load_model(f"causal:someone/tiny@{commit}").signature == model.signature


def test_a_missing_extra_names_the_pip_command(monkeypatch, causal_dir: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'acceptability\[neural\]'"):
        load_model(f"causal:{causal_dir}")


def test_a_signature_opens_the_model_again(causal_dir: Path, arpa: Path) -> None:
    for spec in (f"causal:{causal_dir}", f"ngram:{arpa}"):
        kind, _, folder = spec.partition(":")
        signature = load_model(spec).signature
        again = load_model(f"{kind}:{Path(folder).parent}/{signature.removeprefix(kind + ':')}")
        assert again.signature == signature
        name, version = signature.partition("(")[0].rsplit("@", 1)
        with pytest.raises(ModelError, match=f"not {'0' * len(version)}: it is another model"):
            load_model(f"{kind}:{Path(folder).parent}/{name.removeprefix(kind + ':')}@{'0' * len(version)}")


def test_a_model_without_a_start_token_is_logged(causal_dir: Path, tmp_path: Path, caplog) -> None:
    shutil.copytree(causal_dir, tmp_path / "m")
    config = tmp_path / "m" / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "bos_token": None}))
    load_model(f"causal:{tmp_path / 'm'}").encode([Query("The cats sleep.")])
    assert "has no start token" in caplog.text


def test_a_masked_model_with_faint_attention_is_still_noticed(tmp_path: Path, masked_dir: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    net = AutoModelForMaskedLM.from_pretrained(masked_dir)
    with torch.no_grad():
        for name, weights in net.named_parameters():
            if "attention.output" in name and weights.ndim == 2:
                weights.mul_(1e-3)
    net.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(masked_dir).save_pretrained(tmp_path)
    model = load_model(f"causal:{tmp_path}(bos='[CLS]')")
    with pytest.raises(ModelError, match="no causal model"):
        model.run(model.encode([Query("The cats sleep.")]))


def test_scores_are_float32(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}")
    (output,) = model.run(model.encode([Query("The cats sleep.")]))
    assert output.logprobs.dtype == np.float32
