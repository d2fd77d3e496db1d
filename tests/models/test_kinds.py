"""The kind of a model that is named without one: read from its configuration, in a folder or on a Hub."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from acceptability import evaluate, judge
from acceptability.cli.completion import MODEL_NAMES
from acceptability.errors import ModelError, UnknownName
from acceptability.models import default_model, list_named_models, load_model
from acceptability.models.kinds import complete_model_spec

_URL = "/{repo_id}/resolve/{revision}/{filename}"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write_config(folder: Path, file: str = "config.json", **config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "causal"),
        ({"architectures": ["LlamaForCausalLM"]}, "causal"),
        ({"architectures": ["BertForMaskedLM"]}, "masked"),
        ({"architectures": ["BertForPreTraining"]}, "masked"),
        ({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True}, "seq2seq"),
        ({"architectures": ["BartModel"], "is_encoder_decoder": True}, "seq2seq"),
        ({"architectures": ["BartForSequenceClassification"], "is_encoder_decoder": True}, "classifier"),
        ({"architectures": ["RobertaForSequenceClassification"]}, "classifier"),
    ],
)
def test_the_kind_is_read_from_the_architecture(
    config: dict[str, object], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "acceptability")
    folder = write_config(tmp_path / "model", **config)
    assert complete_model_spec(str(folder)) == f"{kind}:{folder}"
    assert f"it is opened as {kind}:" in caplog.text
    assert str(config["architectures"][0]) in caplog.text


@pytest.mark.parametrize(
    "config",
    [{}, {"model_type": "deberta-v2"}, {"architectures": ["ElectraForPreTraining"]}, {"architectures": ["BertModel"]}],
)
def test_an_architecture_that_does_not_say_is_refused_in_one_line(config: dict[str, object], tmp_path: Path) -> None:
    folder = write_config(tmp_path / "model", **config, a=1)
    with pytest.raises(ModelError, match="Write its kind before it, such as causal:") as raised:
        complete_model_spec(str(folder))
    assert "\n" not in str(raised.value)


def test_folders_of_this_package_and_files(tmp_path: Path, recurrent_dir: Path, causal_dir: Path) -> None:
    for recipe, kind in (("ngram", "ngram"), ("lstm", "recurrent"), ("cbow", "classifier")):
        folder = write_config(tmp_path / recipe, "recipe.json", kind=recipe)
        assert complete_model_spec(f"{folder}(eos=True)") == f"{kind}:{folder}(eos=True)"
    adapter = write_config(tmp_path / "adapter", "adapter_config.json", task_type="CAUSAL_LM")
    assert complete_model_spec(str(adapter)) == f"causal:{adapter}"
    (tmp_path / "m.arpa").write_text("\\data\\")
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert complete_model_spec(str(tmp_path / "m.arpa")).startswith("ngram:")
    assert complete_model_spec(str(tmp_path / "m.gguf")).startswith("causal:")
    assert load_model(complete_model_spec(str(causal_dir))).signature == load_model(f"causal:{causal_dir}").signature
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"it has no config\.json"):
        complete_model_spec(str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot read"):
        complete_model_spec(str(tmp_path / "empty"))


@pytest.mark.parametrize("name", ["trigram", "uniform(vocabulary=9)", "causal:gpt2", "prompted:uniform", "asking:x"])
def test_what_has_a_kind_or_a_name_stays(name: str) -> None:
    assert complete_model_spec(name) == name


def cache_on_hub(cache: Path, name: str, file: str, content: dict[str, object]) -> None:
    """Put a file of a model where the client of the Hub keeps what it downloaded."""
    folder = cache / f"models--{name.replace('/', '--')}"
    write_config(folder / "snapshots" / COMMIT, file, **content)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub's client, which cannot reach the Hub."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def test_an_id_on_the_hub_is_read_from_what_was_downloaded(cache: Path) -> None:
    cache_on_hub(cache, "gpt2", "config.json", {"architectures": ["GPT2LMHeadModel"]})
    cache_on_hub(cache, "someone/adapter", "adapter_config.json", {"task_type": "SEQ_CLS"})
    assert complete_model_spec("gpt2") == "causal:gpt2"
    assert complete_model_spec("gpt2(bos=None)") == "causal:gpt2(bos=None)"
    assert complete_model_spec(f"gpt2@{COMMIT}") == f"causal:gpt2@{COMMIT}"


def test_a_hub_that_cannot_be_reached_is_one_line(cache: Path) -> None:
    with pytest.raises(ModelError, match="the Hugging Face Hub cannot be reached") as raised:
        complete_model_spec("someone/nothing")
    assert "\n" not in str(raised.value)


class HubHandler(BaseHTTPRequestHandler):
    """The part of the Hub that serves single files: ``/OWNER/NAME/resolve/REVISION/FILE``."""

    files: dict[str, bytes]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        body = self.files.get(self.path.rpartition("/")[2])
        self.send_response(404 if body is None else 200)
        if body is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(body or b"").hexdigest()}"')
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if with_body and body:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """The files of a Hub on this machine, which the client of the Hub downloads from."""
    from huggingface_hub import constants

    files: dict[str, bytes] = {}
    handler = type("Handler", (HubHandler,), {"files": files})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield files
        server.shutdown()
        thread.join()


def test_an_id_is_read_from_the_hub(hub: dict[str, bytes]) -> None:
    """By the client's own code, against a server on this machine."""
    hub["config.json"] = json.dumps({"architectures": ["BertForMaskedLM"]}).encode()
    assert complete_model_spec("someone/masked") == "masked:someone/masked"
    hub.clear()
    hub["adapter_config.json"] = json.dumps({"task_type": "CAUSAL_LM"}).encode()
    assert complete_model_spec("someone/adapter") == "causal:someone/adapter"
    hub.clear()
    with pytest.raises(ModelError, match=r"it has no config\.json"):
        complete_model_spec("someone/empty")


def test_a_slip_in_the_name_of_a_model_is_not_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acceptability.models.kinds._read_hub_json", lambda *_: pytest.fail("the Hub was asked"))
    with pytest.raises(UnknownName, match="Did you mean 'trigram'"):
        complete_model_spec("trigam")
    for path in ("./nothing", "/nothing/here", "~/nothing", "a b"):
        with pytest.raises(ModelError, match="no such folder or file"):
            complete_model_spec(path)


def test_the_default_model_is_the_same_wherever_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acceptability.models.is_importable", lambda name: True)
    assert default_model() == "mini-causal"
    monkeypatch.setattr("acceptability.models.is_importable", lambda name: name != "torch")
    assert default_model() == "trigram"


def test_completion_knows_every_named_model() -> None:
    assert tuple(list_named_models()) == MODEL_NAMES


def test_python_takes_names_without_a_kind_too(causal_dir: Path, tmp_path: Path) -> None:
    named = judge("Cats sleep.", model=str(causal_dir))
    spelt = judge("Cats sleep.", model=f"causal:{causal_dir}")
    assert (named.model, named[0].score) == (spelt.model, spelt[0].score)
    assert named.model == f"causal:{causal_dir}"
    (tmp_path / "pairs.csv").write_text("good,bad\nCats sleep.,Cats sleeps.\n")
    (result,) = evaluate(tmp_path / "pairs.csv", [str(causal_dir)], measure="PairAccuracy")
    assert result.model == f"causal:{causal_dir}"
