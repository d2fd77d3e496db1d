"""A stored score is never the answer to another question: whatever can change a score gives another key.

For each kind of model, every file and every option is changed in turn. Options are classified one by one, so that a new
one fails here until somebody has said whether it changes scores.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_model, registry
from acceptability.api.scoring import score
from acceptability.papers.niu_penn.user_models import LenientModel
from acceptability.protocols import Model
from acceptability.report.report_data import read_stored_tokens
from acceptability.store.scores import SCORING_VERSION, ScoreStore, StoreKey, list_stored_models, parse_store_key
from acceptability.text.words import SPECIAL_WORDS, Vocabulary
from acceptability.types import Query, Sentence, Suite
from faulty_server import Faulty
from tiny import SENTENCES

torch = pytest.importorskip("torch")

SUITE = Suite("s", (Sentence("1", "The cats sleep."),))
TRANSFORMERS = ("causal", "masked", "seq2seq", "classifier")

UNKNOWN = ["unknown='<unk>'", "unknown='uniform'", "unknown='refuse'", "unknown='omit'", "unknown=-9.5"]
# An option and a value of it that changes scores, by the kind of model, and the options that change none.
CHANGING = {
    "uniform": ["vocabulary=7"],
    "ngram": ["units='split'", "lower=True", "bos=None", "eos=True", *UNKNOWN],
    "aggregate-markov": ["bos=None", "eos=True", *UNKNOWN],
    "recurrent": ["eos=True", *UNKNOWN],
    "causal": [
        *("bos=None", "bos='.'", "eos=True", "preset='minicons'", "preset='lm-eval'", "spaces='trailing'", "stride=8"),
        *("dtype='float16'", "dtype='bfloat16'", "trust_remote_code=True"),
    ],
    "masked": ["variant='word_l2r'", "stride=8", "dtype='float16'", "dtype='bfloat16'", "trust_remote_code=True"],
    "seq2seq": ["variant='pll'", "eos=True", "dtype='float16'", "dtype='bfloat16'", "trust_remote_code=True"],
    "classifier": ["acceptable=0", "dtype='float16'", "dtype='bfloat16'", "trust_remote_code=True"],
    "remote": ["bos=None", "bos='x'", "version='2'"],
    "prompted": [
        *("method='in_template_lp'", "method='which'", "method='ensemble'", "template='labels'"),
        *("language='zh'", "templates='FILE'", "chat=True"),
    ],
}
NEUTRAL = {
    # It only refuses a model whose probabilities do not sum to 1, and this one's do.
    "recurrent": ["device='cpu'"],
    "causal": ["device='cpu'", "allow_pickle=True"],
    # minicons scores masked models as we do.
    "masked": ["device='cpu'", "allow_pickle=True", "preset='minicons'"],
    "seq2seq": ["device='cpu'", "allow_pickle=True"],
    "classifier": ["device='cpu'", "allow_pickle=True"],
    "remote": ["concurrency=2", "batch=3", "tries=2", "timeout=9.0"],
}
# Tested by themselves below, since a single model cannot show them.
SHOWN_BELOW = {kind: {"adapter"} for kind in TRANSFORMERS} | {"recurrent": {"improper"}}
# A window needs a stride beside it.
SHOWN_BELOW["causal"] = SHOWN_BELOW["masked"] = {"adapter", "window"}


def make_key(model: Model) -> str:
    """The key under which the present version stores what a model says."""
    return StoreKey(model.signature, model.device_class, SCORING_VERSION).text


@pytest.fixture
def make_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    """Copy the files of a tiny model of a kind, to be changed."""

    def copy(kind: str) -> Path:
        source: Path = request.getfixturevalue("arpa" if kind == "ngram" else f"{kind.replace('-', '_')}_dir")
        target = tmp_path / source.name
        if source.is_file():
            return Path(shutil.copy(source, target))
        return Path(shutil.copytree(source, target))

    return copy


@pytest.fixture
def make_spec(make_folder, request: pytest.FixtureRequest) -> Callable[[str], str]:
    def make(kind: str) -> str:
        if kind == "uniform":
            return "uniform"
        if kind == "remote":
            return f"remote:{request.getfixturevalue('toy_server').url}#toy"
        return f"prompted:causal:{make_folder('causal')}" if kind == "prompted" else f"{kind}:{make_folder(kind)}"

    return make


# --- queries ---


def test_every_part_of_a_query_is_in_its_key() -> None:
    queries = [
        Query(text, context, target, rival)
        for text in ("The cats sleep.", "The cats slept.")
        for context in ("", "I think that", "I think that ")
        for target in (None, (0, 3), (4, 8), (0, 8))
        for rival in ("", "The cats sleeps.", "The dog sleeps.")
    ]
    # Parts that are the same text when they are joined.
    queries += [
        Query("b c", "a"),
        Query("c", "a b"),
        Query("a b c"),
        Query("c", rival="a b"),
        Query("c", "a", rival="b"),
    ]
    assert len({query.key for query in queries}) == len(queries)


# --- options ---


@pytest.mark.parametrize("kind", sorted(registry.names("model")))
def test_every_option_is_classified(kind: str) -> None:
    options = [name for name in signature(registry.find("model", kind)).parameters if name != "location"]
    named = {text.partition("=")[0] for text in (*CHANGING[kind], *NEUTRAL.get(kind, ()))}
    assert named | SHOWN_BELOW.get(kind, set()) == set(options)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_the_window_is_in_the_key(kind: str, make_spec) -> None:
    spec = make_spec(kind)
    keys = [make_key(load_model(f"{spec}(stride=8{window})")) for window in ("", ", window=32", ", window=24")]
    assert len(set(keys)) == 3


@pytest.mark.parametrize("kind", sorted(CHANGING))
def test_every_option_that_changes_scores_changes_the_key(kind: str, make_spec, wordings: Path, tmp_path: Path) -> None:
    spec = make_spec(kind)
    if kind == "prompted":
        (Path(spec.removeprefix("prompted:causal:")) / "chat_template.jinja").write_text("{{ messages[0].content }}")
        shutil.copy(wordings, tmp_path / "FILE")
    options = [text.replace("'FILE'", repr(str(tmp_path / "FILE"))) for text in CHANGING[kind]]
    # A classifier trained here takes no options, and is changed below by its files.
    keys = [make_key(load_model(spec)), *(make_key(load_model(f"{spec}({option})")) for option in options)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("kind", sorted(NEUTRAL))
def test_an_option_that_changes_no_score_does_not_change_the_key(kind: str, make_spec) -> None:
    spec = make_spec(kind)
    key = make_key(load_model(spec))
    assert [make_key(load_model(f"{spec}({option})")) for option in NEUTRAL[kind]] == [key] * len(NEUTRAL[kind])


def test_an_improper_model_says_so(tmp_path: Path) -> None:
    from tiny import make_recurrent

    folder = make_recurrent(tmp_path / "model", output="tas_double")
    assert "improper=True" in make_key(load_model(f"recurrent:{folder}(improper=True)"))


# --- files ---


def change_number(path: Path) -> None:
    """Change the last byte of a file of weights, which is part of a number."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_special_token(path: Path) -> None:
    content = json.loads(path.read_text())
    content["added_tokens"][0]["lstrip"] = True
    path.write_text(json.dumps(content))


def change_vocabulary(path: Path) -> None:
    path.write_bytes(Vocabulary((*SPECIAL_WORDS, "cats", "sleep"), "spaces", lower=False).to_json())


def add_adapter(folder: Path) -> None:
    from safetensors.numpy import save_file

    layer = "base_model.model.transformer.h.0.attn.c_proj"
    factors = {
        f"{layer}.lora_A.weight": np.ones((1, 32), np.float32),
        f"{layer}.lora_B.weight": np.ones((32, 1), np.float32),
    }
    save_file(factors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 2}))


WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
FILE_CHANGES: list[tuple[str, str, Callable[[Path], None]]] = [
    *((kind, WEIGHTS, change_number) for kind in (*TRANSFORMERS, "recurrent")),
    *((kind, CONFIG, lambda path: change_json(path, layer_norm_eps=0.1)) for kind in TRANSFORMERS),
    *((kind, TOKENIZER, change_special_token) for kind in TRANSFORMERS),
    *((kind, "tokenizer_config.json", lambda path: change_json(path, bos_token=None)) for kind in TRANSFORMERS),
    ("causal", "", add_adapter),
    ("recurrent", "vocabulary.json", change_vocabulary),
    ("aggregate-markov", "vocabulary.json", change_vocabulary),
    ("aggregate-markov", "model.safetensors", change_number),
]


@pytest.mark.parametrize(
    ("kind", "name", "change"), FILE_CHANGES, ids=[f"{kind}-{name}" for kind, name, _ in FILE_CHANGES]
)
def test_every_file_of_a_model_is_in_its_key(kind: str, name: str, change, make_folder) -> None:
    folder = make_folder(kind)
    before = make_key(load_model(f"{kind}:{folder}"))
    change(folder / name)
    after = make_key(load_model(f"{kind}:{folder}"))
    assert before != after
    assert before.partition("@")[0] == after.partition("@")[0]


# What a tokenizer of transformers may be read from besides, and weights in several files.
MORE_FILES = [
    *(
        "special_tokens_map.json",
        "added_tokens.json",
        "generation_config.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
    ),
    *("spiece.model", "tokenizer.model", "chat_template.jinja", "model-00002-of-00002.safetensors"),
]


@pytest.mark.parametrize("name", MORE_FILES)
def test_a_file_that_a_tokenizer_or_network_may_read_is_in_the_key(name: str, make_folder) -> None:
    folder, keys = make_folder("causal"), []
    for content in (None, b"{}", b"{ }"):
        if content is not None:
            (folder / name).write_bytes(content)
        keys.append(make_key(load_model(f"causal:{folder}")))
    assert len(set(keys)) == 3


def test_pickled_and_quantised_weights_are_in_the_key(make_folder, tmp_path: Path, monkeypatch) -> None:
    folder = make_folder("causal")
    (folder / WEIGHTS).unlink()
    monkeypatch.setattr("acceptability.models.hf.loading.is_importable", lambda name: True)
    for path, spec in (
        (folder / "pytorch_model.bin", f"causal:{folder}(allow_pickle=True)"),
        (tmp_path / "model.gguf", f"causal:{tmp_path / 'model.gguf'}(bos=None)"),
    ):
        keys = []
        for content in (b"one", b"two"):
            path.write_bytes(content)
            keys.append(make_key(load_model(spec)))
        assert keys[0] != keys[1]


@pytest.mark.parametrize("change", ["number", "adapter", "alpha"])
def test_an_adapter_is_in_the_key(change: str, make_folder) -> None:
    folder = make_folder("causal")
    spec, keys = f"causal:{folder}", []
    keys.append(make_key(load_model(spec)))
    add_adapter(folder)
    keys.append(make_key(load_model(spec)))
    if change == "number":
        change_number(folder / "adapter_model.safetensors")
    elif change == "alpha":
        change_json(folder / "adapter_config.json", lora_alpha=3)
    keys += [make_key(load_model(spec))] if change != "adapter" else []
    assert len(set(keys)) == len(keys)


def test_the_numbers_of_an_ngram_model_are_in_its_key(make_folder) -> None:
    path = make_folder("ngram")
    before = make_key(load_model(f"ngram:{path}"))
    path.write_text(path.read_text().replace("-0.30103", "-0.30104"))
    assert make_key(load_model(f"ngram:{path}")) != before


def test_the_files_of_a_trained_ngram_model_are_in_its_key(tmp_path: Path) -> None:
    from acceptability.train import train
    from acceptability.train.ngram_recipes import NGramRecipe

    (tmp_path / "corpus.txt").write_text("\n".join(SENTENCES))
    keys = []
    for name, recipe in (("a", NGramRecipe(order=2, vocabulary=0)), ("b", NGramRecipe(order=3, vocabulary=0))):
        train(recipe, [tmp_path / "corpus.txt"], tmp_path / name / "model")
        keys.append(make_key(load_model(f"ngram:{tmp_path / name / 'model'}")))
    change_vocabulary(tmp_path / "b/model/vocabulary.json")
    keys.append(make_key(load_model(f"ngram:{tmp_path / 'b' / 'model'}")))
    assert len(set(keys)) == 3


def test_the_files_of_a_classifier_trained_here_are_in_its_key(tmp_path: Path) -> None:
    from acceptability.models.sentence import SentenceNetworkShape
    from acceptability.models.sentence.network import build_sentence_network, serialize_sentence_network

    known = Vocabulary((*SPECIAL_WORDS, "cats", "sleep"), "split", lower=True)
    network = build_sentence_network(SentenceNetworkShape("cbow", "sum", 6, words=len(known), top=5))
    (tmp_path / WEIGHTS).write_bytes(serialize_sentence_network(network))
    (tmp_path / "vocabulary.json").write_bytes(known.to_json())
    keys = [make_key(load_model(f"classifier:{tmp_path}"))]
    change_number(tmp_path / WEIGHTS)
    keys.append(make_key(load_model(f"classifier:{tmp_path}")))
    (tmp_path / "vocabulary.json").write_bytes(replace(known, lower=False).to_json())
    keys.append(make_key(load_model(f"classifier:{tmp_path}")))
    assert len(set(keys)) == 3


def test_code_that_may_run_is_in_the_key(make_folder) -> None:
    folder = make_folder("causal")
    (folder / "modeling.py").write_text("x = 1")
    spec = f"causal:{folder}(trust_remote_code=True)"
    before, plain = make_key(load_model(spec)), make_key(load_model(f"causal:{folder}"))
    (folder / "modeling.py").write_text("x = 2")
    assert make_key(load_model(spec)) != before
    # Code that may not run decides nothing.
    assert make_key(load_model(f"causal:{folder}")) == plain


def test_the_prompts_are_in_the_key(make_folder, wordings: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    shutil.copy(wordings, path)
    spec = f"prompted:causal:{make_folder('causal')}(templates={str(path)!r}, template='lines')"
    keys = [make_key(load_model(spec))]
    for old, new in (("So:", "Therefore:"), ('good = ["the"]', 'good = ["a"]'), ('bad = ["it"]', 'bad = ["on"]')):
        path.write_text(path.read_text().replace(old, new))
        keys.append(make_key(load_model(spec)))
    assert len(set(keys)) == len(keys)


def test_the_prompted_model_is_in_the_key(make_folder) -> None:
    folder = make_folder("causal")
    keys = [make_key(load_model(f"prompted:causal:{folder}{options}")) for options in ("()", "(eos=True)()")]
    change_number(folder / WEIGHTS)
    keys.append(make_key(load_model(f"prompted:causal:{folder}")))
    assert len(set(keys)) == 3


def test_what_a_server_says_of_its_model_is_in_the_key(toy_server: Faulty) -> None:
    spec = f"remote:{toy_server.url}#toy"
    before = make_key(load_model(spec))
    toy_server.listed = ({"id": "toy", "root": "toys/another", "owned_by": "us", "created": 1},)
    assert make_key(load_model(spec)) != before


# --- device and scoring version ---


@pytest.mark.parametrize("kind", [*TRANSFORMERS, "prompted"])
def test_the_class_of_device_is_in_the_key_of_half_precision_only(kind: str, make_spec, monkeypatch) -> None:
    spec = make_spec(kind)
    for dtype in ("float32", "float16", "bfloat16"):
        keys = []
        for device in ("auto", "cpu", "cuda", "cuda:1", "mps"):
            options = f"(dtype={dtype!r}, device={device!r})"
            keys.append(make_key(load_model(spec + options + ("()" if kind == "prompted" else ""))))
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        keys.append(make_key(load_model(f"{spec}(dtype={dtype!r})" + ("()" if kind == "prompted" else ""))))
        monkeypatch.undo()
        auto, cpu, cuda, second_cuda, mps, auto_with_gpu = keys
        if dtype == "float32":
            assert len(set(keys)) == 1
        else:
            assert auto == cpu
            assert cuda == second_cuda == auto_with_gpu
            assert len({cpu, cuda, mps}) == 3


def test_a_lenient_model_has_a_key_of_its_own_and_the_device_of_the_strict_one(arpa: Path, causal_dir: Path) -> None:
    strict = load_model(f"ngram:{arpa}")
    assert make_key(LenientModel(strict)) != make_key(strict)
    half = load_model(f"causal:{causal_dir}(dtype='float16', device='cuda')")
    assert "|device:cuda" in make_key(LenientModel(half))


def test_keys_of_version_1_in_full_precision_are_signatures() -> None:
    """What was stored before there were versions has to be found."""
    for model in ("uniform(vocabulary=50000)", "causal:a|b@1(bos='|device:cpu')", "x"):
        assert StoreKey(model, None, 1).text == model
    assert StoreKey("prompted:uniform()", None, 1).text == "asking:uniform()"


def test_keys_are_told_apart_and_read_back() -> None:
    """Also of models whose names look like keys."""
    models = ["m", "m|device:cpu", "m|scoring:2", "m|device:cpu|scoring:2", "m%7Cdevice:cpu", "a|b", "prompted:m()"]
    keys = [
        StoreKey(model, device, scoring) for model in models for device in (None, "cpu", "cuda") for scoring in (1, 2)
    ]
    assert all(first.text != second.text for first, second in combinations(keys, 2))
    assert [parse_store_key(key.text) for key in keys] == keys


def test_a_raised_scoring_version_scores_again(monkeypatch, own_home: Path) -> None:
    before = score(SUITE, "uniform")
    monkeypatch.setattr("acceptability.store.scores.SCORING_VERSION", 2)
    assert not [stored for stored in list_stored_models() if stored.is_current]
    assert dict(score(SUITE, "uniform").values) == dict(before.values)
    assert [(stored.scoring, stored.outputs, stored.is_current) for stored in list_stored_models()] == [
        (1, 1, False),
        (2, 1, True),
    ]
    # It is no part of the question, and so of no signature.
    assert score(SUITE, "uniform").signature == before.signature


def test_a_report_shows_the_tokens_of_half_precision_and_of_this_version(causal_dir: Path, own_home: Path) -> None:
    spec = f"causal:{causal_dir}(dtype='bfloat16')"
    model = load_model(spec)
    query = Query("The cats sleep.")
    (output,) = model.run(model.encode([query]))
    wrong = replace(output, logprobs=output.logprobs - 1)
    with ScoreStore() as store:
        store.add(model.signature, [(query.key, wrong)])
    signatures = {"m": score(SUITE, spec).signature}
    tokens = read_stored_tokens(SUITE, SUITE.sentences, signatures)["m"]["1"]
    assert sum(token.surprisal_bits for token in tokens) == pytest.approx(-output.logprobs.sum() / np.log(2), abs=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_half_precision_of_an_unknown_device_is_not_found(causal_dir: Path, dtype: str, own_home: Path) -> None:
    """Version 1 in full precision is found under the key that the versions before had."""
    model = load_model(f"causal:{causal_dir}(dtype={dtype!r})")
    query = Query("The cats sleep.")
    (output,) = model.run(model.encode([query]))
    wrong = replace(output, logprobs=output.logprobs - 1)
    with ScoreStore() as store:
        # As the version before stored it: under the signature alone.
        store.add(model.signature, [(query.key, wrong)])
    found = score(SUITE, model)["1"]
    expected = wrong if dtype == "float32" else output
    assert found == pytest.approx(float(expected.logprobs.sum()), abs=1e-3)
    assert [stored.is_current for stored in list_stored_models()] == ([True] if dtype == "float32" else [False, True])
    assert score(SUITE, model)["1"] == found
