"""A stranger's study: whatever it names, nothing outside its folder is read and nothing is sent without the flag."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import registry, reproduce
from acceptability.cli import app
from acceptability.errors import AcceptabilityError, ModelError, SpecError
from acceptability.models import load_model
from acceptability.papers.npi.npi_training import confine_plan, read_plan_folder
from acceptability.report.report_data import attach_suites, load_report_data
from acceptability.suites import catalog
from faulty_server import Faulty
from tiny import arpa_text

PAIRS = "good,bad\nThe dogs bark.,The dogs barks.\nThe cats sleep.,The cats sleeps.\nThe boys run.,The boys runs.\n"
_opened: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        _opened.append(os.path.realpath(os.fsdecode(arguments[0])))
    if event in ("socket.connect", "socket.getaddrinfo"):
        _opened.append(event)


# A hook cannot be removed: it is added once, and the list is emptied before every command.
sys.addaudithook(_watch)


def _is_network(event: str) -> bool:
    return event.startswith("socket.")


class Stranger:
    """A folder with a study of a stranger's, beside one with the user's own files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.own = folder / "stranger", folder / "own"
        for path in (self.folder, self.own):
            path.mkdir()
        (self.own / "secret.csv").write_text(PAIRS)
        (self.own / "secret.tsv").write_text("word\tcount\nthe\t3\n<unk>\t1\n")
        (self.own / "secret.toml").write_text('suites = ["secret.csv"]\nmodels = ["uniform"]\n')
        (self.own / "secret.arpa").write_text(arpa_text(PAIRS.replace(",", " ").splitlines()))
        (self.folder / "pairs.csv").write_text(PAIRS)
        (self.folder / "small.arpa").write_text(arpa_text(PAIRS.replace(",", " ").splitlines()))

    def run(self, *allowed: str, name: str = "study.toml", **described: Any) -> Any:
        """Run a study; what it does not describe is harmless."""
        lines = {"suites": ["pairs.csv"], "models": ["uniform"], "measures": ["PairAccuracy"], "resamples": 0}
        if name == "study.toml":
            text = "".join(
                f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in (lines | described).items()
            )
            (self.folder / name).write_text(text, encoding="utf-8")
        _opened.clear()
        options = [part for what in allowed for part in ("--allow", what)]
        return CliRunner().invoke(app, ["study", "run", str(self.folder / name), *options, "--json"])

    def refuses(self, flag: str, **described: Any) -> None:
        """Check that a study is refused with an error that names the flag, before it reads or sends anything."""
        done = self.run(**described)
        assert isinstance(done.exception, AcceptabilityError), done.output
        assert f"--allow {flag}" in str(done.exception)
        assert "\n" not in str(done.exception)
        own = os.path.realpath(self.own)
        assert [path for path in _opened if path.startswith((own, "socket."))] == []

    def accepts(self, *allowed: str, **described: Any) -> None:
        done = self.run(*allowed, **described)
        assert done.exit_code == 0, done.exception
        assert json.loads(done.stdout)
        # Nothing is sent but to a server that was allowed, whatever the libraries would like to look up.
        assert any(what.startswith("remote:") for what in allowed) or not any(map(_is_network, _opened))


@pytest.fixture
def stranger(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stranger:
    monkeypatch.chdir(tmp_path)
    return Stranger(tmp_path)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plug-in with a model, a measure and a reduction."""
    targets = {
        "acceptability.models": "acceptability.models.ngram.model:open_uniform",
        "acceptability.measures": "acceptability.measures.pairs:PairAccuracy",
        "acceptability.reductions": "acceptability.reductions:LP",
    }
    real = importlib.metadata.entry_points

    def entry_points(group: str) -> Any:
        return [EntryPoint("foreign", targets[group], group)] if group in targets else real(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    registry.names.cache_clear()
    yield
    registry.names.cache_clear()


def test_a_study_reads_its_own_folder_from_anywhere(stranger: Stranger) -> None:
    stranger.accepts(models=["uniform", "ngram:small.arpa"], reductions=["lp"])
    (stranger.folder / "counts.tsv").write_text("word\tcount\nThe\t3\n<unk>\t1\n")
    stranger.accepts(reductions=["exp(slor(unigrams='counts.tsv'))", "slor('counts.tsv')"])
    (stranger.folder / "link.csv").symlink_to("pairs.csv")
    stranger.accepts(suites=["link.csv", "starter"], models=["trigram"])


def test_links_are_resolved(stranger: Stranger) -> None:
    (stranger.folder / "link.csv").symlink_to(stranger.own / "secret.csv")
    (stranger.folder / "up").symlink_to("../own")
    (stranger.folder / "twice.csv").symlink_to("up/secret.csv")
    (stranger.folder / "hidden").symlink_to(stranger.own / "secret.arpa")
    for name in ("link.csv", "up/secret.csv", "twice.csv"):
        stranger.refuses(str(stranger.own / "secret.csv"), suites=[name])
        stranger.accepts(str(stranger.own / "secret.csv"), suites=[name])
        stranger.accepts(str(stranger.own), suites=[name])
    # The hash of a signature may follow a path, and then another file is opened than the one that is named.
    for name in ("hidden", "hidden@0123456789ab", "hidden@/x"):
        stranger.refuses(str(stranger.own / "secret.arpa"), models=[f"ngram:{name}"])


def test_a_loop_of_links_is_one_line(stranger: Stranger) -> None:
    (stranger.folder / "a.csv").symlink_to("b.csv")
    (stranger.folder / "b.csv").symlink_to("a.csv")
    assert isinstance(stranger.run(suites=["a.csv"]).exception, AcceptabilityError)
    assert isinstance(stranger.run(suites=["a\0.csv"]).exception, AcceptabilityError)


def test_a_study_that_is_itself_a_link_is_refused(stranger: Stranger) -> None:
    (stranger.folder / "link.toml").symlink_to(stranger.own / "secret.toml")
    done = stranger.run(name="link.toml")
    assert f"--allow {stranger.own / 'secret.toml'}" in str(done.exception)
    assert str(stranger.own / "secret.toml") not in _opened


def test_links_in_the_folder_of_a_model_are_resolved(stranger: Stranger, causal_dir: Path) -> None:
    shutil.copytree(causal_dir, stranger.folder / "model")
    stranger.accepts(models=["causal:model"])
    config = stranger.folder / "model/tokenizer_config.json"
    config.rename(stranger.own / "config")
    config.symlink_to(stranger.own / "config")
    stranger.refuses(str(stranger.own / "config"), models=["causal:model"])
    for name in ("model@0123456789ab", "prompted:causal:model"):
        stranger.refuses(str(stranger.own / "config"), models=[f"causal:{name}".replace("causal:prompted", "prompted")])


def test_what_the_configuration_of_a_model_names_is_checked(stranger: Stranger, causal_dir: Path) -> None:
    shutil.copytree(causal_dir, stranger.folder / "model")
    path = stranger.folder / "model/tokenizer_config.json"
    config = json.loads(path.read_text())
    # Left behind by an author: there is no such file here.
    path.write_text(json.dumps(config | {"vocab_file": "/home/an-author/vocab.json"}))
    stranger.accepts(models=["causal:model"])
    path.write_text(json.dumps(config | {"vocab_file": str(stranger.own / "secret.tsv")}))
    stranger.refuses(str(stranger.own / "secret.tsv"), models=["causal:model"])
    path.write_text(json.dumps(config))
    adapter = stranger.folder / "model/adapter_config.json"
    adapter.write_text(json.dumps({"base_model_name_or_path": "someone/base"}))
    stranger.refuses("hub", models=["causal:model"])
    adapter.write_text(json.dumps({"base_model_name_or_path": "../../own"}))
    stranger.refuses(str(stranger.own), models=["causal:model"])


def test_the_base_model_of_an_adapter_is_checked_too(stranger: Stranger, causal_dir: Path) -> None:
    """It lies in the folder of the file, but beside the model that the file names, and is opened with it."""
    from safetensors.numpy import save_file

    shutil.copytree(causal_dir, stranger.folder / "base")
    (stranger.folder / "model").mkdir()
    lora = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "base_model_name_or_path": "../base"}
    (stranger.folder / "model/adapter_config.json").write_text(json.dumps(lora))
    prefix = "base_model.model.transformer.h.0.attn.c_proj.lora"
    factors = {f"{prefix}_A.weight": np.ones((1, 32), np.float32), f"{prefix}_B.weight": np.ones((32, 1), np.float32)}
    save_file(factors, stranger.folder / "model/adapter_model.safetensors")
    stranger.accepts(models=["causal:model"])
    path = stranger.folder / "base/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"attn_implementation": "kernels-community/x"}))
    stranger.refuses("hub", models=["causal:model"])
    # An adapter that names itself, or two that name each other, are no endless loop.
    (stranger.folder / "base/adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "../model"}))
    stranger.refuses("hub", models=["causal:model"])


def test_the_hash_after_a_model_hides_nothing(stranger: Stranger, causal_dir: Path) -> None:
    """With the right hash, the folder before it is opened."""
    shutil.copytree(causal_dir, stranger.folder / "model")
    path = stranger.folder / "model/tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"vocab_file": str(stranger.own / "secret.tsv")}))
    version = load_model(f"causal:{stranger.folder / 'model'}").signature.partition("@")[2].partition("(")[0]
    for spec in (f"causal:model@{version}", f"classifier:model@{version}", f"prompted:causal:model@{version}"):
        stranger.refuses(str(stranger.own / "secret.tsv"), models=[spec])
    path.write_text(json.dumps(config))
    version = load_model(f"causal:{stranger.folder / 'model'}").signature.partition("@")[2].partition("(")[0]
    stranger.accepts(models=[f"causal:model@{version}"])


@pytest.mark.parametrize(
    ("file", "content"),
    [
        # Opened as it is, in the folder in which the command runs.
        ("tokenizer_config.json", {"vocab_file": "own/secret.tsv"}),
        ("tokenizer_config.json", {"vocab": "../../own/secret.tsv"}),
        ("tokenizer_config.json", {"fast_tokenizer_files": ["tokenizer.json", "../../own/secret.tsv"]}),
        ("special_tokens_map.json", {"x": {"y": ["../../own/secret.tsv"]}}),
        ("model.safetensors.index.json", {"metadata": {}, "weight_map": {"w": "../../own/secret.tsv"}}),
        ("pytorch_model.bin.index.json", {"metadata": {}, "weight_map": {"w": "own/secret.tsv"}}),
        ("inner/adapter_config.json", {"base_model_name_or_path": "../../../own/secret.tsv"}),
    ],
)
def test_no_file_of_a_model_names_a_file_elsewhere(
    stranger: Stranger, causal_dir: Path, file: str, content: dict[str, Any]
) -> None:
    shutil.copytree(causal_dir, stranger.folder / "model")
    path = stranger.folder / "model" / file
    path.parent.mkdir(exist_ok=True)
    before = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(before | content))
    stranger.refuses(str(stranger.own / "secret.tsv"), models=["causal:model"])
    # Tokens are texts too, and some of them are the names of folders.
    path.write_text(json.dumps(before | {"x": [".", "/", "..", "x" * 5000, "a\0b"]}))
    if "index" not in file:
        stranger.accepts(models=["causal:model"])


@pytest.mark.parametrize("content", ["kernels-community/x", {"": "kernels-community/x"}])
def test_a_model_does_not_get_its_kernels_from_the_hub(stranger: Stranger, causal_dir: Path, content: object) -> None:
    shutil.copytree(causal_dir, stranger.folder / "model")
    path = stranger.folder / "model/config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"attn_implementation": content}))
    stranger.refuses("hub", models=["causal:model"])
    path.write_text(json.dumps(config | {"attn_implementation": "eager"}))
    stranger.accepts(models=["causal:model"])


@pytest.mark.parametrize("option", ["trust_remote_code", "allow_pickle"])
def test_no_spelling_of_an_option_lets_a_model_run_code(stranger: Stranger, causal_dir: Path, option: str) -> None:
    """Python reads a bold or a full-width letter in a name as the plain one."""
    shutil.copytree(causal_dir, stranger.folder / "model")
    bold, wide = f"{option[:-1]}\U0001d41e", f"{option[:-1]}\uff45"
    for name in (option, bold, wide):
        for spec in (f"causal:model({name}=True)", f"causal:model(dtype='float32', {name}=1)"):
            for model in (spec, f"prompted:{spec}(chat=False)", f"causal:gpt2({name}=True)"):
                error = stranger.run("hub", models=[model]).exception
                assert "a file cannot let" in str(error), model
                assert isinstance(error, SpecError)
    stranger.accepts(models=[f"causal:model({option}=False)"])
    # A folder may have any name.
    shutil.copytree(causal_dir, stranger.folder / option)
    stranger.accepts(models=[f"causal:{option}"])


def test_a_named_pipe_does_not_hold_the_program_up(stranger: Stranger, causal_dir: Path) -> None:
    os.mkfifo(stranger.folder / "pipe.csv")
    (stranger.folder / "link.csv").symlink_to("pipe.csv")
    shutil.copytree(causal_dir, stranger.folder / "model")
    os.mkfifo(stranger.folder / "model/x.json")
    for described in ({"suites": ["pipe.csv"]}, {"suites": ["link.csv"]}, {"models": ["causal:model"]}):
        error = stranger.run(**described).exception
        assert "is neither a file nor a folder" in str(error)
        assert isinstance(error, SpecError)


def test_variables_are_not_expanded(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", str(stranger.own))
    for name in ("$OWN/secret.csv", "${OWN}/secret.csv", "%OWN%/secret.csv"):
        assert isinstance(stranger.run(suites=[name]).exception, AcceptabilityError)
        assert [path for path in _opened if path.startswith(os.path.realpath(stranger.own))] == []


def test_a_nested_spec_may_be_a_text(stranger: Stranger) -> None:
    path = stranger.own / "secret.tsv"
    for reduction in (
        f"exp(\"slor(unigrams='{path}')\")",
        f"exp(exp(slor('{path}')))",
        f"slor(unigrams='{path}\\x00')",
    ):
        error = stranger.run(reductions=[reduction]).exception
        assert isinstance(error, AcceptabilityError), reduction
        assert str(path) not in _opened


def test_the_files_of_suites_name_no_others(stranger: Stranger) -> None:
    """Cells are texts, whatever they look like."""
    row = f"{stranger.own}/secret.csv,remote:http://127.0.0.1:9/v1#m,../own/secret.csv"
    (stranger.folder / "tagged.csv").write_text(f"good,bad,model,path,file\nThe dogs bark.,The dogs barks.,{row}\n")
    stranger.accepts(suites=["tagged.csv"])
    assert [path for path in _opened if path.startswith(os.path.realpath(stranger.own))] == []


def test_a_folder_under_hf_is_the_users_own_even_if_the_hub_is_allowed(stranger: Stranger) -> None:
    for name in ("hf:own", "hf:own:default", "hf:own@main", "hf:../own:default@main", f"hf:{stranger.own}:x"):
        error = stranger.run("hub", suites=[name]).exception
        if not name.startswith("hf:../"):
            assert f"--allow {stranger.own}" in str(error), name
        assert isinstance(error, AcceptabilityError)
        assert [path for path in _opened if path.startswith(os.path.realpath(stranger.own))] == []
    # These would read every text file of the current folder.
    for name in ("hf:text", "hf:csv", "hf:json:x"):
        assert "write hf:OWNER/NAME" in str(stranger.run("hub", suites=[name]).exception)


def test_paths_that_lead_out_of_the_folder_are_refused(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(stranger.own))
    # "own/…" is beside the study's folder, in the folder in which the command runs.
    for folder in ("../own", str(stranger.own), "own", "./../stranger/../own", "~"):
        if folder != "~":
            stranger.refuses(str(stranger.own / "secret.csv"), suites=[f"{folder}/secret.csv"])
            stranger.accepts("own", suites=[f"{folder}/secret.csv"])
        stranger.refuses(str(stranger.own / "secret.arpa"), models=[f"ngram:{folder}/secret.arpa"])
        for reduction in ("slor(unigrams={})", "slor({})", "exp(slor(unigrams={}))"):
            name = repr(f"{folder}/secret.tsv")
            stranger.refuses(str(stranger.own / "secret.tsv"), reductions=[reduction.format(name)])
        spec = f"prompted:ngram:small.arpa(templates='{folder}/secret.toml')"
        stranger.refuses(str(stranger.own / "secret.toml"), models=[spec])
    for kind in ("ngram", "aggregate-markov", "recurrent", "causal", "masked", "seq2seq", "classifier"):
        for location in (str(stranger.own), "../own", "../own/none"):
            stranger.refuses(os.path.normpath(stranger.folder / location), models=[f"{kind}:{location}"])
    for name in ("secret.txt", "secret.json", "secret.jsonl", "secret.parquet", "secret.TSV"):
        stranger.refuses(str(stranger.own / name), suites=[f"../own/{name}"])


def test_nothing_is_sent_to_a_server(stranger: Stranger, toy_server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("ACCEPTABILITY_API_KEY", "s3cret")
    spec = f"remote:{toy_server.url}#toy"
    for model in (spec, f"prompted:{spec}", f"asking:prompted:{spec}", f"{spec}(version='1', bos=None)"):
        stranger.refuses("remote:127.0.0.1", models=["uniform", model])
    assert toy_server.headers == []
    assert "--allow remote:127.0.0.1" in str(stranger.run("remote:localhost", "hub", models=[spec]).exception)
    stranger.accepts("remote:127.0.0.1", models=[spec])
    assert toy_server.headers
    assert "s3cret" not in str(toy_server.headers)
    port = toy_server.url.split(":")[2].split("/")[0]
    stranger.accepts(f"remote:127.0.0.1:{port}", models=[spec])


def test_nothing_is_fetched_from_the_hub(stranger: Stranger) -> None:
    for name in ("hf:nyu-mll/blimp", "hf:someone/data:config@main", "hf:pairs.csv", "hf:../own"):
        stranger.refuses("hub", suites=[name])
    for kind in ("causal", "masked", "seq2seq", "classifier", "prompted:causal"):
        for name in ("gpt2", "someone/model", "someone/model@main", "gpt2(bos=None)"):
            stranger.refuses("hub", models=[f"{kind}:{name}"])
    # A folder of the same name beside the study is a folder, not a model of the Hub.
    (stranger.folder / "gpt2").mkdir()
    assert "config.json" in str(stranger.run(models=["causal:gpt2"]).exception)


@pytest.mark.parametrize("location", ["./x", "./x@0123456789ab", "x", "x@0123456789ab", "gone", "./x.GGUF", "~/x"])
@pytest.mark.parametrize("kind", ["causal", "classifier", "prompted:masked"])
def test_a_path_beside_the_study_is_no_id_on_the_hub(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, kind: str, location: str
) -> None:
    """The path of a file in the folder ``stranger``, typed from above, looks like the model ``x`` of ``stranger``."""
    monkeypatch.setenv("HOME", str(stranger.folder))
    if not location.startswith("./"):
        (stranger.folder / "x").write_text("no folder")
    (stranger.folder / "gone").symlink_to("nothing")
    stranger.run(models=[f"{kind}:{location}"])
    monkeypatch.chdir(stranger.folder.parent)
    # The tests are offline, so that libraries would not even try.
    asked: list[object] = []

    def ask(*arguments: object, **options: object) -> None:
        asked.append(arguments)
        raise OSError("the Hub was asked")

    monkeypatch.setattr("huggingface_hub.snapshot_download", ask)
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_commits", ask)
    done = CliRunner().invoke(app, ["study", "run", "stranger/study.toml"])
    assert isinstance(done.exception, AcceptabilityError), done.output
    assert asked == []


def test_what_lies_beside_an_adapter_is_not_its_base_model(stranger: Stranger, causal_dir: Path) -> None:
    """The libraries open ``someone/base`` from the current folder, or from the Hub."""
    shutil.copytree(causal_dir, stranger.folder / "model")
    (stranger.folder / "model/someone/base").mkdir(parents=True)
    adapter = stranger.folder / "model/adapter_config.json"
    adapter.write_text(json.dumps({"base_model_name_or_path": "someone/base"}))
    stranger.refuses("hub", models=["causal:model"])


@pytest.mark.parametrize(
    "address",
    [
        r"https://evil.org\@api.openai.com/v1",
        "https://evil.org%2f@api.openai.com/v1",
        r"https://api.openai.com\.evil.org",
    ],
)
def test_an_address_that_two_parsers_read_differently_is_refused(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The library that sends the request would ask the first host, with the key of the second one."""
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    for allowed in ("remote:api.openai.com", "remote:evil.org"):
        done = stranger.run(allowed, models=[f"remote:{address}#m"])
        assert isinstance(done.exception, SpecError)
        assert not any(map(_is_network, _opened))


def test_an_address_without_a_host_is_none(stranger: Stranger) -> None:
    for address in ("file:///etc/passwd#m", "#m", "https:#m"):
        for allowed in ((), ("remote:",)):
            done = stranger.run(*allowed, models=[f"remote:{address}"])
            assert isinstance(done.exception, SpecError)
            assert "is no address" in str(done.exception)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_is_not_run(stranger: Stranger) -> None:
    for described in (
        {"models": ["foreign"]},
        {"models": ["foreign:/etc/passwd"]},
        {"models": ["prompted:foreign:x"]},
        {"measures": ["foreign"]},
        {"reductions": ["foreign"]},
        {"reductions": ["exp(foreign)"]},
    ):
        stranger.refuses("plugin:foreign", **described)
    stranger.accepts("plugin:foreign", models=["foreign"], measures=["foreign"], reductions=["foreign"])


def test_a_suite_of_a_plugin_is_not_read(stranger: Stranger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = Path(catalog.__file__).with_name("catalog.toml").read_text(encoding="utf-8")
    (tmp_path / "catalog.toml").write_text(text.replace('id = "starter"', 'id = "foreign"'), encoding="utf-8")
    shutil.copytree(Path(catalog.__file__).with_name("starter"), tmp_path / "starter")
    entries = [entry for entry in catalog.read_entries(tmp_path / "catalog.toml") if entry.id == "foreign"]
    assert entries
    own = catalog.load_catalog()
    monkeypatch.setattr(catalog, "load_catalog", lambda: (*own, *entries))
    for name in ("foreign", "foreign/agreement"):
        stranger.refuses("plugin:foreign", suites=[name])
    stranger.accepts("plugin:foreign", suites=["foreign"])


def test_a_slip_of_the_pen_allows_nothing(stranger: Stranger) -> None:
    for what in ("rmote:localhost", "hubb", ""):
        assert "hub, remote:HOST, plugin:NAME" in str(stranger.run(what).exception)


def test_in_python_the_same_is_allowed(stranger: Stranger) -> None:
    from acceptability.papers import evaluate_study

    study = stranger.folder / "study.toml"
    stranger.run(suites=["../own/secret.csv"])
    with pytest.raises(SpecError, match=r"in Python, allow=\['.*secret.csv'\]"):
        evaluate_study(study)
    evaluated = evaluate_study(str(study), allow=[str(stranger.own)])
    assert (evaluated.title, len(evaluated.suites), len(evaluated.results)) == ("study", 1, 1)
    with pytest.raises(SpecError, match="allow must be a list"):
        evaluate_study(study, allow="hub")


def test_a_file_of_paradigms_that_leads_elsewhere_is_refused(stranger: Stranger) -> None:
    from acceptability.generate import generate_suite

    text = (
        'name = "toy"\n[[paradigm]]\nname = "a"\ncount = 1\nsentence = "{x} sleep{s}."\nacceptable = ["s=1"]\n'
        '[paradigm.slots]\nx = ["It", "She"]\n[paradigm.factors]\ns = ["0", "1"]\n[paradigm.parts.s]\n"s=1" = "s"\n'
        '"s=0" = ""\n'
    )
    (stranger.own / "secret.toml").write_text(text)
    (stranger.folder / "toy.toml").symlink_to(stranger.own / "secret.toml")
    arguments = ["generate", str(stranger.folder / "toy.toml"), "--out", "toy.jsonl"]
    _opened.clear()
    error = CliRunner().invoke(app, arguments).exception
    assert f"--allow {stranger.own / 'secret.toml'}" in str(error)
    assert str(stranger.own / "secret.toml") not in _opened
    done = CliRunner().invoke(app, [*arguments, "--allow", str(stranger.own)])
    assert done.exit_code == 0, done.exception
    assert len(generate_suite(arguments[1], allow=[str(stranger.own)]).sentences) == 2
    error = CliRunner().invoke(app, ["generate", "agreement", "--out", "x.jsonl", "--allow", "hub"]).exception
    assert "omit --allow" in str(error)


def _write_run(folder: Path, suite: str, arguments: str = "") -> None:
    """Write a run whose result is of a suite that has the name and hash that its author likes."""
    folder.mkdir(parents=True)
    signature = f"PairAccuracy(ties=0.0)|suite:{suite}#123456789abc|model:uniform.lp()|n:1"
    row = {"measure": "PairAccuracy", "model": "uniform", "suite": suite, "value": 1.0, "n": 1, "signature": signature}
    about = {"id": folder.name, "command": "evaluate", "arguments": arguments, "signatures": [signature]}
    for name, content in (("run", about), ("results", [row]), ("units", [])):
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_a_strangers_run_opens_no_files_and_no_addresses(stranger: Stranger, own_home: Path) -> None:
    own = os.path.realpath(stranger.own)
    for number, suite in enumerate(
        ("secret", f"{own}/secret.csv", "own/secret.csv", "hf:someone/data", "../own/s.txt")
    ):
        folder = stranger.folder / f"run-{number}"
        _write_run(folder, suite, f"acceptability evaluate {own}/{suite}.csv hf:secret/{suite} --model uniform")
        for source in (folder, folder / "results.json"):
            _opened.clear()
            report_data = attach_suites(load_report_data([str(source)]))
            assert [path for path in _opened if path.startswith((own, "socket."))] == []
            assert "Name its file with --suite" in report_data.notes[0]
    # The user's own run may name the user's own file.
    _write_run(own_home / "runs/mine", "secret", f"acceptability evaluate {own}/secret.csv")
    _opened.clear()
    attach_suites(load_report_data(["mine"]))
    assert f"{own}/secret.csv" in _opened


_PAIRS_SIGNED = "PairAccuracy(ties=0.5)|suite:starter#acb70427c6a8|model:{}|n:383|ci:none|acceptability:0.1.0"


@pytest.mark.parametrize(
    "signature",
    [
        *(
            _PAIRS_SIGNED.format(scores)
            for scores in (
                "ngram:{own}/secret.arpa(units='split').lp()",
                "ngram:{own}/secret.arpa@{hash}(units='split').lp()",
                "ngram:own/secret.arpa@{hash}(units='split').lp()",
                "ngram:~/secret.arpa@{hash}(units='split').lp()",
                "causal:~own@{hash}(bos=None).lp()",
                "causal:../own@{hash}(bos=None).lp()",
                "causal:gpt2(bos=None).lp()",
                "causal:gpt2@main(bos=None).lp()",
                "causal:own@{hash}(bos=None, allow_pickle=True).lp()",
                "causal:own@{hash}(bos=None, trust_remote_code=1).lp()",
                "remote:http://127.0.0.1:9/v1#m.lp()",
                "prompted:remote:http://127.0.0.1:9/v1#m(method='which').log_odds()",
                "asking:prompted:remote:http://127.0.0.1:9/v1#m(method='which').log_odds()",
                "prompted:uniform(method='which', templates='{own}/secret.toml').log_odds()",
                "uniform(vocabulary=9).slor(unigrams='{own}/secret.tsv')",
                'uniform(vocabulary=9).slor("{own}/secret.tsv")',
                "uniform(vocabulary=9).exp(slor(unigrams='' '{own}/secret.tsv'))",
            )
        ),
        "study(paper='npi', suite='{own}/secret.csv')|table:Table 1|n:1|acceptability:0.1.0",
        "study(paper='cola', quick=True)|table:Table 1|n:1|acceptability:0.1.0",
        'judge|sentences:["A b."]|model:ngram:{own}/secret.arpa.lp()|n:1|acceptability:0.1.0',
        "score|suite:{own}/secret#{hash}|model:uniform(vocabulary=9).lp()|acceptability:0.1.0",
        "ratings(kind='likert')|data:{own}/secret.csv@{hash}|acceptability:0.1.0",
    ],
)
def test_a_strangers_signature_opens_no_path_and_no_address(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, signature: str
) -> None:
    """Models are found by name and hash, tables and suites by name in the current folder."""
    monkeypatch.setenv("HOME", str(stranger.own))
    # Also if the stranger knows the user's file, and can give its hash.
    known = load_model(f"ngram:{stranger.own / 'secret.arpa'}").signature.partition("@")[2].partition("(")[0]
    text = signature.replace("{own}", str(stranger.own)).replace("{hash}", known)
    _opened.clear()
    (again,) = reproduce(text)
    assert again.status in ("missing", "not reproducible")
    assert again.differences
    assert [path for path in _opened if path.startswith((os.path.realpath(stranger.own), "socket."))] == []


def test_the_plan_of_a_folder_of_classifiers_is_confined(stranger: Stranger) -> None:
    """``study npi --restarts DIR`` reads which sentences and encoders the classifiers were trained with."""
    model = {"name": "bag-of-words", "kind": "cbow"}
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"suite": str(stranger.own / "secret.csv")}, {}, str(stranger.own / "secret.csv")),
        ({"suite": "../own/secret.csv"}, {}, str(stranger.own / "secret.csv")),
        ({"suite": "hf:someone/data"}, {}, "hub"),
        ({}, {"name": "../own"}, str(stranger.own)),
        ({}, {"options": {"vectors": "own/secret.tsv"}}, str(stranger.own / "secret.tsv")),
        ({}, {"name": "x", "start": f"glove:{stranger.own}/secret.tsv"}, str(stranger.own / "secret.tsv")),
        ({}, {"name": "x", "start": "masked:someone/model"}, "hub"),
        ({}, {"name": "x", "start": f"masked:{stranger.own}"}, str(stranger.own)),
        ({}, {"name": "x", "start": "remote:http://127.0.0.1:9/v1#m"}, "remote:127.0.0.1"),
    ]
    for plan, changed, flag in cases:
        text = json.dumps({"suite": "", "restarts": 1, "models": [model | changed]} | plan)
        (stranger.folder / "plan.json").write_text(text)
        _opened.clear()
        error = CliRunner().invoke(app, ["study", "npi", "--restarts", str(stranger.folder), "--json"]).exception
        assert f"--allow {flag}" in str(error)
        assert [path for path in _opened if path.startswith((os.path.realpath(stranger.own), "socket."))] == []
        folder = confine_plan(read_plan_folder(stranger.folder), [flag])
        assert [planned.name for planned in folder.models] == [(model | changed)["name"]]
    for wrong in ({"models": [{"name": 1, "kind": "cbow"}]}, {"models": [model | {"options": []}]}, {"restarts": "x"}):
        (stranger.folder / "plan.json").write_text(json.dumps({"suite": "", "restarts": 1, "models": []} | wrong))
        with pytest.raises(ModelError, match="cannot read"):
            read_plan_folder(stranger.folder)
