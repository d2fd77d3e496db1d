"""Small inputs that would take for ever, fill the memory, lead elsewhere or run code: each is refused in one line."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from acceptability import registry
from acceptability.errors import AcceptabilityError, CorpusError, ModelError, StoreError, SuiteError
from acceptability.generate.lines import key_lines
from acceptability.generate.phenomena import generated_suite
from acceptability.generate.reading import read_paradigms
from acceptability.models.arpa import Arpa
from acceptability.models.word_vectors import read_vectors
from acceptability.report.gather import gather
from acceptability.report.latex import escaped
from acceptability.report.rows import harmless, write_rows
from acceptability.scoring import judge
from acceptability.spelling import read_located
from acceptability.store.runs import save_run, saved_runs
from acceptability.suites import catalog, fetch, load_suite
from acceptability.suites.notation import read_notation
from acceptability.train import corpus
from acceptability.train.classifiers.intermediate import read_task
from acceptability.train.corpus import open_corpus

from .rule import check_message
from .targets import ARPA, PARADIGM, SYNTAXGYM

MANY_FACTORS = "".join(f'f{n}=["a","b"]\n' for n in range(30))


def refused(call: Callable[..., object], *args: object, match: str | None = None, **options: object) -> None:
    """Check that a call is refused soon, in one line."""
    start = time.perf_counter()
    with pytest.raises(AcceptabilityError, match=match) as caught:
        call(*args, **options)
    assert time.perf_counter() - start < 5
    check_message(str(caught.value))


def written(folder: Path, name: str, content: str) -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "txt", "json", "parquet"])
def test_a_nul_in_a_name_is_refused(ending: str) -> None:
    refused(load_suite, f"a\0.{ending}", match="null")


def test_a_name_that_is_not_utf8_is_refused() -> None:
    refused(load_suite, "a\udcff.csv", match="Rename")
    refused(read_located, "causal:a\udcff", match="UTF-8")


def test_an_option_that_python_cannot_hash_is_refused() -> None:
    refused(registry.make, "measure", "ADC({[]: 1})", match="unhashable")
    refused(registry.make, "measure", "ADC(delta=" + "-" * 9_000 + "1)", match="cannot read")


def test_many_brackets_in_the_name_of_a_model_take_no_time() -> None:
    refused(read_located, "x" + "(a=" * 3_000 + ")", match="cannot read")
    refused(read_located, "x" + "(a=" * 100_000 + ")", match="more than 10,000 characters")


def test_many_columns_take_no_time(tmp_path: Path) -> None:
    names = ",".join(map(str, range(200_000)))
    refused(load_suite, written(tmp_path, "a.csv", f"{names},199999\n"), match="two columns are named '199999'")


def test_a_message_about_a_file_is_one_short_line(tmp_path: Path) -> None:
    refused(load_suite, written(tmp_path, "a.csv", '"a\nb\x1b[31m",c\n1,2\n'), match=r"a b\\x1b")
    refused(load_suite, written(tmp_path, "b.csv", "x" * 100_000 + "\n1\n"), match="Name it 'text'")


def test_examples_that_stand_for_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "word " * 20_000 + "[a/*b] " * 9 + "\n"
    refused(read_notation, Path(written(tmp_path, "a.txt", long)), match="too much for one example")
    monkeypatch.setattr("acceptability.suites.notation._MOST_CHARACTERS", 10_000)
    refused(read_notation, Path(written(tmp_path, "b.txt", ("x " + "[a/*b] " * 9 + "\n") * 5)), match="stand for more")


def test_contrasts_of_many_choices_are_found_soon(tmp_path: Path) -> None:
    start = time.perf_counter()
    suite = load_suite(written(tmp_path, "a.txt", ("x " + "[a/*b] " * 9 + "\n") * 5))
    assert time.perf_counter() - start < 3
    assert len(suite.sentences) == 5 * 512
    assert len(suite.contrasts) == 5 * 9


def test_too_many_predictions_are_refused(tmp_path: Path) -> None:
    many = {**SYNTAXGYM, "predictions": [{"formula": "(1;%match%) > 0"}] * 101}
    refused(load_suite, written(tmp_path, "a.json", json.dumps(many)), match="101 predictions")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name = " + "[" * 3_000, "not TOML"),
        ("name" + ".a" * 1_000 + " = 1", "inside each other"),
        ("name = " + "1" * 5_000, "not TOML"),
        ('name = "a"\nword = [1]\nparadigm = [{}]', "a word is 1"),
        (PARADIGM.replace("count = 5", "count = 99999999999999"), "at most 1,000,000"),
        (PARADIGM.replace("count = 5", f"count = {10**400}"), "at most 1,000,000"),
        (
            PARADIGM.replace(
                "[paradigm.factors]", "[paradigm.factors]\n" + "".join(f'f{n}=["a","b"]\n' for n in range(30))
            ),
            "4,294,967,296 combinations",
        ),
    ],
)
def test_a_file_of_paradigms_that_never_ends_is_refused(content: str, problem: str) -> None:
    refused(read_paradigms, content, "mine.toml", match=problem)


NOTHING_FITS = """name = "x"
[[paradigm]]
name = "c"
cross = ["a", "b"]
sentence = "{a number=sg} {b number=sg} {n}"
acceptable = ["f=1"]
[paradigm.slots]
a = "noun kind=person"
c = "noun kind=food"
b = "noun kind=person number=@c.gender"
[paradigm.factors]
f = ["1", "0"]
[paradigm.parts.n]
"f=1" = "x"
"f=0" = "y"
"""


def test_a_crossing_in_which_nothing_fits_ends(tmp_path: Path) -> None:
    refused(generated_suite, written(tmp_path, "a.toml", NOTHING_FITS), match="no word fits the slot 'b'")


def test_a_number_is_not_taken_from_a_gender() -> None:
    wrong = PARADIGM.replace("{other number=sg}", "{other number=@subject.gender}")
    refused(read_paradigms, wrong, "mine.toml", match="gender never has a value of number")


def test_only_newlines_end_a_line_of_a_paradigm() -> None:
    assert key_lines('name = "a\u2028b\x0c"\ntitle = "b"\r\ntags = 1')[("tags",)] == 3


def test_a_small_archive_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(next(iter(catalog())), id="bomb", folder="bomb", files={"a.csv": hashlib.sha256(b"").hexdigest()})
    (tmp_path / "bomb").mkdir()
    (tmp_path / "bomb" / "a.csv.gz").write_bytes(gzip.compress(b"\0" * 2_000_000))
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    monkeypatch.setattr(fetch, "_MOST_BYTES", 1_000_000)
    refused(fetch.contents, entry, match="more than 1,000,000 bytes")


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../a.csv", b"x" * 2_000_000)
    assert len(fetch._member(tmp_path / "a.zip", "a.csv")) == 2_000_000
    assert list(tmp_path.rglob("*.csv")) == []
    monkeypatch.setattr(fetch, "_MOST_BYTES", 1_000_000)
    with pytest.raises(ValueError, match="larger than any suite"):
        fetch._member(tmp_path / "a.zip", "a.csv")


def test_packed_text_of_one_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 3_000_000))
    monkeypatch.setattr(corpus, "_BLOCK", 100_000)
    monkeypatch.setattr(corpus, "_LONGEST_LINE", 1_000_000)
    with pytest.raises(CorpusError, match="a line of more than 1,000,000 bytes"):
        list(open_corpus([tmp_path / "a.gz"]).sentences())


def test_a_damaged_file_of_a_task_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"premise\thypothesis\tlabel\n" * 99))
    packed[15] ^= 255
    (tmp_path / "a.tsv.gz").write_bytes(packed)
    refused(read_task, tmp_path / "a.tsv.gz", match="cannot read")


def test_a_run_whose_id_leads_elsewhere_is_not_read(own_home: Path) -> None:
    run = save_run("evaluate", "", [], [], [])
    path = run.folder / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace(run.id, "../../elsewhere"), encoding="utf-8")
    runs, problems = saved_runs()
    assert runs == []
    assert "its id is '../../elsewhere'" in problems[0]


def test_what_was_typed_need_not_be_utf8(own_home: Path) -> None:
    run = save_run("evaluate", "a\udcff", [{"suite": "\udcff"}], [], [])
    assert saved_runs()[0][0].arguments == "a\udcff"
    assert json.loads((run.folder / "results.json").read_text(encoding="utf-8")) == [{"suite": "\udcff"}]


def test_rows_of_another_form_are_no_report(tmp_path: Path) -> None:
    row = {"measure": "m", "model": "m", "suite": "s", "value": 1.0, "n": 1}
    for changed, problem in (
        ({"value": "x"}, "value is 'x'"),
        ({"model": []}, r"model is \[\]"),
        ({"n": True}, "n is"),
    ):
        refused(gather, [written(tmp_path, "a.json", json.dumps([row | changed]))], match=problem)
    assert gather([written(tmp_path, "b.json", json.dumps([row]))]).signatures == []


@pytest.mark.parametrize("cell", ["=1+1", "+1a", "-x", "@x", "\t=1", " =1", "\u200b=1", "＝1", "\n=1", "\0=1"])
def test_no_cell_of_a_sheet_is_a_formula(cell: str) -> None:
    assert str(harmless(cell)).startswith("'")


def test_nothing_in_a_latex_table_is_a_command() -> None:
    assert "\\input" not in escaped("\\input{/etc/passwd} $x$ & % ~ ^ # _ {}\n\\end{table}")
    assert "\\end" not in escaped("\\end{table}")


class Harm:
    """What a hostile file of weights would do when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


WORDS = {"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}


@pytest.mark.parametrize("options", ["", "(allow_pickle=True)"])
def test_code_in_a_file_of_weights_is_never_run(options: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}))
    (folder / "tokenizer.json").write_text(json.dumps(WORDS))
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm(tmp_path / "harm"), protocol=2))
    with pytest.raises(ModelError):
        judge(["a"], f"causal:{folder}{options}")
    assert not (tmp_path / "harm").exists()
    pickle.loads((folder / "pytorch_model.bin").read_bytes())  # noqa: S301
    assert (tmp_path / "harm").exists(), "the file does no harm, and the test shows nothing"


def test_an_error_on_the_command_line_is_one_line_without_commands_to_the_terminal(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", '"a\nb\x1b]0;title\x07",c\n1,2\n')
    command = [sys.executable, "-m", "acceptability", "evaluate", path, "--model", "uniform"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_a_damaged_store_of_runs_is_told(own_home: Path) -> None:
    run = save_run("evaluate", "", [], [], [])
    (run.folder / "results.json").write_text("[" * 100_000)
    refused(gather, [run.id])
    from acceptability.serve.reports import rows_of

    with pytest.raises(StoreError, match="is damaged"):
        rows_of(run, "results")


def test_brackets_without_end_in_a_row_of_json_are_refused(tmp_path: Path) -> None:
    for depth in (900, 960, 990, 100_000):
        with pytest.raises(SuiteError):
            load_suite(written(tmp_path, "a.jsonl", '{"text": ' + "[" * depth + "]" * depth + "}\n"))


def test_a_lone_carriage_return_is_written_so_that_it_is_read_back(tmp_path: Path) -> None:
    for ending in (".csv", ".tsv"):
        write_rows(tmp_path / f"a{ending}", [{"id": "1", "text": "Cats\rsleep."}, {"id": "2", "text": "Cats sleep."}])
        assert [each.text for each in load_suite(str(tmp_path / f"a{ending}")).sentences] == [
            "Cats\rsleep.",
            "Cats sleep.",
        ]


def test_numbers_that_are_too_large_are_refused(tmp_path: Path) -> None:
    refused(read_vectors, Path(written(tmp_path, "a.txt", f"cats {'1' * 60} 2\n")), match="too large")
    refused(Arpa, Path(written(tmp_path, "a.arpa", ARPA.replace("ngram 1=4", "ngram 1=" + "4" * 5_000))), match="whole")
