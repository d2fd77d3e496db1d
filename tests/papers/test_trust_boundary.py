"""A stranger's study: whatever it names, nothing outside its folder is read and nothing is sent without the flag."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acceptability import registry
from acceptability.cli import app
from acceptability.errors import AcceptabilityError, SpecError
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
            text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in (lines | described).items())
            (self.folder / name).write_text(text)
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
    real = registry.entry_points

    def entry_points(group: str) -> Any:
        return [EntryPoint("foreign", targets[group], group)] if group in targets else real(group=group)

    monkeypatch.setattr(registry, "entry_points", entry_points)
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
    from acceptability.generate.phenomena import generate_suite

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
