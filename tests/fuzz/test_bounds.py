"""Small inputs that would take for ever, fill the memory, lead elsewhere or run code: each is refused in one line."""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import registry
from acceptability.api import comparison
from acceptability.api.scoring import judge
from acceptability.errors import AcceptabilityError, CorpusError, ModelError, StoreError, SuiteError
from acceptability.generate import generate_suite
from acceptability.generate.parser import locate_keys, read_paradigms
from acceptability.models.ngram.arpa import Arpa
from acceptability.models.sentence.word_vectors import read_vectors
from acceptability.papers import read_study
from acceptability.report.report_data import load_report_data
from acceptability.report.result_tables import escape_latex
from acceptability.specs import parse_model_spec
from acceptability.stats.bootstrap import Bootstrap
from acceptability.store.runs import list_saved_runs, save_run
from acceptability.suites import catalog, load_catalog, load_suite
from acceptability.suites.notation import read_notation
from acceptability.text import containers
from acceptability.text.io import escape_formulas, write_rows
from acceptability.train import corpus
from acceptability.train.classifiers.intermediate import read_intermediate_task
from acceptability.train.corpus import open_corpus

from .rule import check_message
from .targets import ARPA, PARADIGM, SYNTAXGYM

MANY_FACTORS = "".join(f'f{n}=["a","b"]\n' for n in range(30))


def refused(call: Callable[..., object], *args: object, match: str | None = None, **options: object) -> None:
    """Check that a call is refused, in one line, and without seconds of work that would be minutes for more."""
    start = time.process_time()
    with pytest.raises(AcceptabilityError, match=match) as caught:
        call(*args, **options)
    assert time.process_time() - start < 20
    check_message(str(caught.value))


def written(folder: Path, name: str, content: str) -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "txt", "json", "parquet"])
def test_a_nul_in_a_name_is_refused(ending: str) -> None:
    refused(load_suite, f"a\0.{ending}", match="null")


def test_a_name_that_is_not_utf8_is_refused() -> None:
    refused(load_suite, "a\udcff.csv", match="Rename")
    refused(parse_model_spec, "causal:a\udcff", match="UTF-8")


def test_an_option_that_python_cannot_hash_is_refused() -> None:
    refused(registry.make, "measure", "ADC({[]: 1})", match="unhashable")
    refused(registry.make, "measure", "ADC(delta=" + "-" * 9_000 + "1)", match="cannot read")


def test_many_brackets_in_the_name_of_a_model_take_no_time() -> None:
    refused(parse_model_spec, "x" + "(a=" * 3_000 + ")", match="cannot read")
    refused(parse_model_spec, "x" + "(a=" * 100_000 + ")", match="more than 10,000 characters")


def test_many_columns_take_no_time(tmp_path: Path) -> None:
    names = ",".join(map(str, range(200_000)))
    refused(load_suite, written(tmp_path, "a.csv", f"{names},199999\n"), match="two columns are named '199999'")


def test_a_message_about_a_file_is_one_short_line(tmp_path: Path) -> None:
    refused(load_suite, written(tmp_path, "a.csv", '"a\nb\x1b[31m",c\n1,2\n'), match=r"a b\\x1b")
    refused(load_suite, written(tmp_path, "b.csv", "x" * 100_000 + "\n1\n"), match="Name it 'text'")


def test_examples_that_stand_for_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "word " * 20_000 + "[a/*b] " * 9 + "\n"
    refused(read_notation, Path(written(tmp_path, "a.txt", long)), match="too much for one example")
    monkeypatch.setattr("acceptability.suites.notation._MAX_CHARACTERS", 10_000)
    refused(read_notation, Path(written(tmp_path, "b.txt", ("x " + "[a/*b] " * 9 + "\n") * 5)), match="expand to more")


def test_contrasts_of_many_choices_are_found_soon(tmp_path: Path) -> None:
    start = time.process_time()
    suite = load_suite(written(tmp_path, "a.txt", ("x " + "[a/*b] " * 9 + "\n") * 5))
    assert time.process_time() - start < 20
    assert len(suite.sentences) == 5 * 512
    assert len(suite.contrasts) == 5 * 9


def test_too_many_predictions_are_refused(tmp_path: Path) -> None:
    many = {**SYNTAXGYM, "predictions": [{"formula": "(1;%match%) > 0"}] * 101}
    refused(load_suite, written(tmp_path, "a.json", json.dumps(many)), match="101 predictions")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name = " + "[" * 3_000, "not TOML"),
        ("name" + ".a" * 1_000 + " = 1", "nested more than"),
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
    refused(generate_suite, written(tmp_path, "a.toml", NOTHING_FITS), match="no word fits the slot 'b'")


def test_a_number_is_not_taken_from_a_gender() -> None:
    wrong = PARADIGM.replace("{other number=sg}", "{other number=@subject.gender}")
    refused(read_paradigms, wrong, "mine.toml", match="gender never has a value of number")


def test_only_newlines_end_a_line_of_a_paradigm() -> None:
    assert locate_keys('name = "a\u2028b\x0c"\ntitle = "b"\r\ntags = 1')[("tags",)] == 3


def test_a_small_archive_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(
        next(iter(load_catalog())), id="bomb", folder="bomb", files={"a.csv": hashlib.sha256(b"").hexdigest()}
    )
    (tmp_path / "bomb").mkdir()
    (tmp_path / "bomb" / "a.csv.gz").write_bytes(gzip.compress(b"\0" * 2_000_000))
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    monkeypatch.setattr(containers, "MAX_BYTES", 1_000_000)
    refused(catalog.read_contents, entry, match="more than 1,000,000 bytes")


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../a.csv", b"x" * 2_000_000)
    assert len(catalog._read_zip_member(tmp_path / "a.zip", "a.csv")) == 2_000_000
    assert list(tmp_path.rglob("*.csv")) == []
    monkeypatch.setattr(catalog, "MAX_BYTES", 1_000_000)
    with pytest.raises(ValueError, match="larger than any suite"):
        catalog._read_zip_member(tmp_path / "a.zip", "a.csv")


def test_packed_text_of_one_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 3_000_000))
    monkeypatch.setattr(corpus, "_BLOCK", 100_000)
    monkeypatch.setattr(corpus, "_LONGEST_LINE", 1_000_000)
    with pytest.raises(CorpusError, match="a line of more than 1,000,000 bytes"):
        list(open_corpus([tmp_path / "a.gz"]).sentences())


@pytest.mark.parametrize("pack", [gzip.open, lzma.open], ids=["gz", "xz"])
def test_a_packed_model_of_one_endless_line_is_refused(pack: Callable[..., Any], tmp_path: Path) -> None:
    ending = "gz" if pack is gzip.open else "xz"
    with pack(tmp_path / f"vectors.txt.{ending}", "wb") as out:
        out.write(b"a" * 20_000_000)
    refused(read_vectors, tmp_path / f"vectors.txt.{ending}", match="a line of more than 4,000,000 characters")
    with gzip.open(tmp_path / "model.arpa.gz", "wb") as out:
        out.write(b"a" * 20_000_000)
    refused(Arpa, tmp_path / "model.arpa.gz", match="a line of more than 4,000,000 characters")


def arrays(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return path


def array(shape: tuple[int, ...], content: bytes, kind: str = "<f4") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": shape})
    return out.getvalue() + content


def test_arrays_that_lie_about_their_size_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = array((2,), np.array(["a", "b"]).tobytes(), "<U1")
    lying = arrays(tmp_path / "a.npz", words=words, vectors=array((10, 10**10), b""))
    refused(read_vectors, lying, match="and has fewer")
    monkeypatch.setattr("acceptability.models.sentence.word_vectors._MAX_UNPACKED_BYTES", 1_000)
    small = arrays(tmp_path / "b.npz", words=words, vectors=array((2, 10_000), b"\0" * 80_000))
    refused(read_vectors, small, match="would unpack to 80,128 bytes")


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", words=np.array([Harm(tmp_path / "harm")], object), vectors=np.zeros((1, 2)))
    refused(read_vectors, tmp_path / "a.npz", match="is no .npz file")
    assert not (tmp_path / "harm").exists()


def test_arrays_are_nowhere_read_with_pickle() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "src").rglob("*.py")}
    for path in (path for path, text in sources.items() if "np.load" in text):
        nodes = ast.walk(ast.parse(sources[path]))
        calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load"]
        given = [word for call in calls for word in call.keywords if word.arg == "allow_pickle"]
        assert all(ast.unparse(word.value) == "False" for word in given), path


def test_one_text_many_times_in_a_small_table_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    indices = pyarrow.array([0] * 8_000, pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["a" * 1_000_000]))
    parquet.write_table(pyarrow.table({"text": column}), tmp_path / "a.parquet", store_schema=False)
    assert (tmp_path / "a.parquet").stat().st_size < 1_000_000
    refused(load_suite, str(tmp_path / "a.parquet"), match="its texts have 8,000,000,000 bytes")


@pytest.mark.parametrize("option", ["trust_remote_code=True", "dtype='float32', trust_remote_code=True"])
def test_a_study_in_a_file_cannot_let_a_model_run_code(option: str, tmp_path: Path) -> None:
    for model in (f"causal:x({option})", f"prompted:causal:x({option})(method='yes_no')"):
        study = f"suites = ['starter']\nmodels = [{json.dumps(model)}]\n"
        refused(read_study, Path(written(tmp_path, "a.toml", study)), match="a file cannot let .* run its own code")


def test_too_many_draws_are_refused() -> None:
    refused(Bootstrap, 2_000_000_000, match="from 40 to 10,000,000")
    refused(comparison.SignificanceTest, Bootstrap(), 10**14, match="from 0 to 10,000,000")


def test_an_option_that_is_computed_is_refused_in_plain_words() -> None:
    refused(registry.make, "measure", "ADC(delta=9**9)", match="neither a number, a text, True, False nor None")


def test_a_damaged_file_of_a_task_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"premise\thypothesis\tlabel\n" * 99))
    packed[15] ^= 255
    (tmp_path / "a.tsv.gz").write_bytes(packed)
    refused(read_intermediate_task, tmp_path / "a.tsv.gz", match="cannot read")


def test_a_run_whose_id_leads_elsewhere_is_not_read(own_home: Path) -> None:
    run = save_run("evaluate", "", [], [], [])
    path = run.folder / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace(run.id, "../../elsewhere"), encoding="utf-8")
    runs, problems = list_saved_runs()
    assert runs == []
    assert "its id is '../../elsewhere'" in problems[0]


def test_what_was_typed_need_not_be_utf8(own_home: Path) -> None:
    run = save_run("evaluate", "a\udcff", [{"suite": "\udcff"}], [], [])
    assert list_saved_runs()[0][0].arguments == "a\udcff"
    assert json.loads((run.folder / "results.json").read_text(encoding="utf-8")) == [{"suite": "\udcff"}]


def test_rows_of_another_form_are_no_report(tmp_path: Path) -> None:
    row = {"measure": "m", "model": "m", "suite": "s", "value": 1.0, "n": 1}
    for changed, problem in (
        ({"value": "x"}, "value is 'x'"),
        ({"model": []}, r"model is \[\]"),
        ({"n": True}, "n is"),
    ):
        refused(load_report_data, [written(tmp_path, "a.json", json.dumps([row | changed]))], match=problem)
    assert load_report_data([written(tmp_path, "b.json", json.dumps([row]))]).signatures == []


@pytest.mark.parametrize("cell", ["=1+1", "+1a", "-x", "@x", "\t=1", " =1", "\u200b=1", "＝1", "\n=1", "\0=1"])
def test_no_cell_of_a_sheet_is_a_formula(cell: str) -> None:
    assert str(escape_formulas(cell)).startswith("'")


def test_nothing_in_a_latex_table_is_a_command() -> None:
    assert "\\input" not in escape_latex("\\input{/etc/passwd} $x$ & % ~ ^ # _ {}\n\\end{table}")
    assert "\\end" not in escape_latex("\\end{table}")


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
        judge(["a"], model=f"causal:{folder}{options}")
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
    refused(load_report_data, [run.id])
    from acceptability.serve.browsing import read_rows

    with pytest.raises(StoreError, match="is damaged"):
        read_rows(run, "results")


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
