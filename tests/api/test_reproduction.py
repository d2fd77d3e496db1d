"""Results computed again from their signatures: from the signature alone, from saved runs, and what is missing."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import program
from acceptability import __version__, compare, judge, load_model, load_suite, reproduce, score
from acceptability.api.evaluation import evaluate, measure_file
from acceptability.errors import ModelError, UnknownName
from acceptability.models import iter_signed_locations, list_named_models
from acceptability.papers import sign_tables, study
from acceptability.specs import build_signature, parse_signature, shorten_signature
from acceptability.stats.bootstrap import Bootstrap, parse_bootstrap
from acceptability.store.runs import RunInputs, SuiteInput, list_saved_runs, save_run
from acceptability.store.scorefile import parse_score_signature
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.types import Result

Run = Callable[..., "subprocess.CompletedProcess[str]"]
README = Path(__file__).parents[2] / "README.md"

# "trigram      0.654  0.605  0.700  383", as the README prints results in Python.
README_ROW = re.compile(r"^(\S+) +(\d\.\d+) +(\d\.\d+) +(\d\.\d+) +(\d+)$", re.MULTILINE)
# "All                        383  0.653 [0.604, 0.699]  0.922 [0.890, 0.945]", as it prints a table by phenomenon.
TABLE_ROW = re.compile(r"^\S.*? +\d+((?: +\d\.\d+ \[\d\.\d+, \d\.\d+\])+)$", re.MULTILINE)
QUICK_MODELS = ("uniform", "trigram")

MINE = """\
G,B,topic
The cat sleeps.,The cat sleep.,a
The dogs were here.,The dogs was here.,b
She is late.,She are late.,a
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The program, typed in a folder of its own."""

    def start(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = program.typed(arguments, tmp_path, os.environ)
        assert done.returncode == code, done.stderr
        return done

    return start


def change(signature: str, **fields: str) -> str:
    """The signature with other fields."""
    changed = parse_signature(signature) | fields
    return build_signature(changed.pop("measure"), changed)


def save(results: list[Result], inputs: RunInputs | None = None) -> str:
    """Save results as a run, and return its id."""
    rows, signatures = [result.row() for result in results], [result.signature for result in results]
    return save_run("evaluate", "", rows, collect_unit_rows(results), signatures, inputs).id


@pytest.fixture
def move_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Go on without any run and without any stored output of a model: with the signature alone."""
    return lambda: monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "elsewhere"))


# --- from the printed signature alone ---


def list_readme_rows() -> list[tuple[str, str]]:
    """The models and the numbers that the README prints in its Python block."""
    rows = README_ROW.findall(README.read_text(encoding="utf-8"))
    return [(model, f"{value} [{low}, {high}]") for model, value, low, high, _ in rows]


def test_the_readme_has_rows_to_reproduce() -> None:
    assert [model for model, _ in list_readme_rows()] == ["uniform", "trigram", "mini-causal"]


@pytest.mark.parametrize(
    ("model", "printed"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row[0] not in QUICK_MODELS)) for row in list_readme_rows()],
)
def test_a_row_of_the_readme_is_equal(model: str, printed: str, move_away: Callable[[], None]) -> None:
    (result,) = evaluate("starter", [model], measure=["PairAccuracy(ties=0.5)"])
    move_away()
    (again,) = reproduce(result.signature, expected=printed)
    assert again.is_same, again.differences
    (other,) = reproduce(result.signature, expected="0.1234")
    assert other.status == "different"


def list_signatures(stderr: str) -> list[str]:
    """The signatures that a command prints below its table, each on a line of its own."""
    return [line for line in stderr.splitlines() if "|acceptability:" in line]


def list_readme_commands() -> list[list[str]]:
    """The commands in the README's console block."""
    lines = re.findall(r"^\$ acceptability (.+)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("models", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_row_of_the_table_that_the_readme_prints_is_equal(
    run: Run, models: int, move_away: Callable[[], None]
) -> None:
    (command,) = (words for words in list_readme_commands() if words[0] == "evaluate")
    # The second model takes longer than the first and the rest of the test.
    second = slice(command.index("mini-causal") - 1, command.index("mini-causal") + 1)
    del command[second if models == 1 else slice(0)]
    results = json.loads(run(*command, "--json").stdout)
    cells = [f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" for row in results]
    table = [re.split(r"(?<=\]) +", row.strip()) for row in TABLE_ROW.findall(README.read_text(encoding="utf-8"))]
    printed = [row[column] for column in range(models) for row in table]
    assert cells == printed
    assert len(printed) == 14 * models
    move_away()
    for row, cell in list(zip(results, cells, strict=True))[::6]:
        run("reproduce", row["signature"], "--expect", cell)
        run("reproduce", row["signature"], "--expect", f"0.123{cell[5:]}", code=3)


def test_the_sentences_that_the_readme_judges_are_equal(
    run: Run, tmp_path: Path, move_away: Callable[[], None]
) -> None:
    (command,) = (words for words in list_readme_commands() if words[0] == "judge")
    done = run(*command, "--signatures")
    scores = re.findall(r"^(-\d+\.\d{3})  \S", done.stdout, re.MULTILINE)
    (signature,) = list_signatures(done.stderr)
    assert len(scores) == 2
    (tmp_path / "judged.json").write_text(run(*command, "--json").stdout)
    move_away()
    (again,) = reproduce(signature, expected=[{"score": printed} for printed in scores])
    assert again.status == "equal within rounding"
    # Below each sentence, the README has the surprisals of its tokens.
    for row in again.rows:
        shown = "  ".join(f"{token['token']} {token['surprisal_bits']:.1f}" for token in row["tokens"])  # type: ignore[attr-defined]
        assert shown in done.stdout
    run("reproduce", signature, "--expect", "judged.json")
    (wrong,) = reproduce(signature, expected=[{"score": scores[0]}, {"score": scores[0]}])
    assert wrong.status == "different"
    assert len(wrong.differences) == 1


@pytest.mark.usefixtures("data")
def test_published_scores_as_in_the_readme_are_equal(run: Run, data: Path, move_away: Callable[[], None]) -> None:
    (line,) = re.findall(r"^    acceptability (measure li_adger .+\\\n.+)$", README.read_text(), re.MULTILINE)
    words = shlex.split(line.replace("\\\n", ""))
    (scores,) = (data / "li_adger").rglob(words[words.index("--scores") + 1])
    words[words.index("--scores") + 1] = str(scores)
    rows = json.loads(run(*words, "--json").stdout)
    assert len(rows) == 2
    move_away()
    for row in rows:
        (again,) = reproduce(row["signature"], data=[str(scores)], expected=take_numbers(row))
        assert again.status == "equal", again.differences
        assert reproduce(row["signature"])[0].status == "missing"


def take_numbers(row: Mapping[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("value", "low", "high", "n")}


def test_rows_of_two_models_of_the_demo_are_equal(move_away: Callable[[], None]) -> None:
    results = evaluate("starter", QUICK_MODELS, measure=["PairAccuracy(ties=0.5)", "PBC()"], by="phenomenon")
    assert len(results) == 56
    move_away()
    # Overall, groups and macro means of both measures; the slow test takes every row of every model.
    for result in (*results[::14], *results[1::14], *results[13::14]):
        (again,) = reproduce(result.signature, expected=take_numbers(result.row()))
        assert again.status == "equal", again.differences


@pytest.mark.slow
def test_every_row_of_the_demo_is_equal(run: Run, own_home: Path, move_away: Callable[[], None]) -> None:
    results = json.loads(run("demo", "--json").stdout)
    (saved,) = list_saved_runs()[0]
    assert len(saved.signatures) == len(results)
    assert {one.status for one in reproduce("latest")} == {"equal"}
    # Without the run and what was stored, the signature is all that there is.
    move_away()
    for row in results:
        (alone,) = reproduce(row["signature"], expected=take_numbers(row))
        assert alone.status == "equal", alone.differences


@pytest.mark.slow
@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("paper", ["adc", "niu-penn", "park", "humans", "cola", "syntaxgym"])
def test_every_table_of_a_study_is_equal(run: Run, paper: str, move_away: Callable[[], None]) -> None:
    rows = json.loads(run("study", paper, "--json").stdout)
    signatures = list(dict.fromkeys(row["signature"] for row in rows))
    assert len(signatures) == len({row["table"] for row in rows})
    move_away()
    for signature in signatures:
        (again,) = reproduce(signature, expected=[row for row in rows if row["signature"] == signature])
        assert again.status == "equal", again.differences


@pytest.mark.usefixtures("data")
def test_a_study_prints_the_signature_of_each_table(run: Run, tmp_path: Path, move_away: Callable[[], None]) -> None:
    (signature,) = list_signatures(run("study", "niu-penn", "--table", "Table 2", "--signatures").stderr)
    (tmp_path / "rows.json").write_text(run("study", "niu-penn", "--table", "Table 2", "--json").stdout)
    move_away()
    run("reproduce", signature, "--expect", "rows.json")


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("paper", "table"), [("adc", "Table 3"), ("park", "Table 1"), ("humans", "BLiMP (Warstadt et al. 2020)")]
)
def test_a_table_of_a_study_is_equal(paper: str, table: str) -> None:
    cells = study(paper, table=table)
    signature = sign_tables(paper, cells)[table]
    rows = [cell.as_row() for cell in cells]
    (again,) = reproduce(signature, expected=rows)
    assert again.status == "equal", again.differences
    assert len(again.rows) == len(cells) >= 4
    assert any(isinstance(row["ours"], float) for row in rows)
    wrong = [row | {"ours": 0.123} for row in rows]
    assert len(reproduce(signature, expected=wrong)[0].differences) == len(cells)


@pytest.mark.parametrize("name", [name for name, model in list_named_models().items() if model.is_installed()])
def test_a_named_model_opens_by_its_signature(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signature = load_model(name).signature
    monkeypatch.chdir(tmp_path)
    assert load_model(signature).signature == signature
    kind, at, options = signature.partition("@")
    if at:
        wrong = f"{kind}@{'0' * 12}{options[12:]}"
        with pytest.raises(ModelError, match="not 000000000000: it is another model"):
            load_model(wrong)


def test_a_prompted_model_opens_by_its_signature() -> None:
    signature = load_model("prompted:trigram(method='in_template_lp')").signature
    assert load_model(signature).signature == signature


def test_a_model_is_found_in_a_folder_that_the_user_names(tmp_path: Path) -> None:
    trigram = Path(list_named_models()["trigram"].make_spec().removeprefix("ngram:"))
    copied = tmp_path / "models" / "deep" / "mine"
    shutil.copytree(trigram, copied)
    signature = load_model(f"ngram:{copied}").signature
    assert signature.startswith("ngram:mine@")
    with pytest.raises(ModelError, match="no file or folder of this name and content"):
        load_model(signature)
    assert load_model(signature, look_in=[tmp_path]).signature == signature
    (result,) = evaluate("starter", [f"ngram:{copied}"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (without,) = reproduce(result.signature)
    assert without.status == "missing"
    assert "name its place: --look-in FOLDER" in without.differences[0]
    (found,) = reproduce(result.signature, look_in=[tmp_path], expected={"value": result.value})
    assert found.status == "equal"
    (named,) = reproduce(result.signature, models=[f"ngram:{copied}"], expected={"value": result.value})
    assert named.status == "equal"


def test_a_model_of_the_hub_is_found_at_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / "models--me--tiny" / "snapshots" / commit).mkdir(parents=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    locations = iter_signed_locations("causal", "me/tiny@0123456789ab", packaged=[], look_in=[])
    assert list(locations) == [f"me/tiny@{commit}"]
    assert list(iter_signed_locations("ngram", "me/tiny@0123456789ab", packaged=[], look_in=[])) == []


@pytest.mark.parametrize("library", ["httpx", "httpx2", "requests"])
def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Releases of huggingface_hub connect with one of these libraries, and let its errors through."""
    error = pytest.importorskip(library).exceptions.ConnectionError if library == "requests" else None
    error = error or pytest.importorskip(library).ConnectError

    def fail(*args: object, **options: object) -> None:
        raise error("Name or service not known")

    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_commits", fail)
    with pytest.raises(ModelError, match=r"me/tiny@0123456789ab is not on this machine, .* Name or service not known"):
        load_model("causal:me/tiny@0123456789ab")


def test_a_signature_cannot_lead_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    trigram = Path(list_named_models()["trigram"].make_spec().removeprefix("ngram:"))
    shutil.copytree(trigram, tmp_path / "outside")
    signature = load_model(f"ngram:{tmp_path / 'outside'}").signature
    for name in ("../outside", "*", "inside/../../outside"):
        with pytest.raises(ModelError):
            load_model(signature.replace("outside", name), look_in=[tmp_path / "inside"])


@pytest.mark.parametrize(
    "bootstrap", [Bootstrap(), Bootstrap(0), Bootstrap(40, by="item", seed=3, method="bca"), Bootstrap(level=0.9)]
)
def test_a_bootstrap_reads_back(bootstrap: Bootstrap) -> None:
    assert parse_bootstrap(bootstrap.signature).signature == bootstrap.signature


# --- from saved runs ---


def test_a_run_a_short_form_and_a_signature_mean_the_same_result() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"])
    name = save([result])
    for text in (result.signature, f" {result.signature}\n", shorten_signature(result.signature), name, "latest"):
        (again,) = reproduce(text)
        assert (again.status, again.run, again.signature) == ("equal", name, result.signature)
    with pytest.raises(UnknownName, match="no signature or run named '00000000'"):
        reproduce("00000000")


def test_rounding_is_no_difference_and_more_is_one() -> None:
    (result,) = evaluate("starter", ["trigram"], measure=["PairAccuracy"])
    assert result.value is not None
    save([replace(result, value=result.value + 1e-9)])
    assert reproduce("latest")[0].status == "equal within rounding"
    save([replace(result, value=result.value + 1e-4)])
    (again,) = reproduce("latest")
    assert again.status == "different"
    assert re.fullmatch(r"value is 0\.\d+, and was 0\.\d+", again.differences[0])
    save([replace(result, low=None)])
    assert "low is 0" in reproduce("latest")[0].differences[0]


def test_a_users_table_is_kept_with_its_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(MINE)
    run("evaluate", "mine.csv", "--columns", "good=G,bad=B", "-m", "trigram", "--by", "topic")
    assert json.loads(run("report", "latest", "--json").stdout)["notes"] == []
    (tmp_path / "mine.csv").unlink()
    assert json.loads(run("report", "latest", "--json").stdout)["notes"] == []
    assert "The dogs were here." in (tmp_path / "report.html").read_text(encoding="utf-8")
    again = json.loads(run("reproduce", "latest", "--json").stdout)
    assert {row["status"] for row in again} == {"equal"}
    assert len(again) == 4
    # Elsewhere there is no run: the signature names the suite, and the user the file.
    (tmp_path / "elsewhere.csv").write_text(MINE)
    options = ("--data", "elsewhere.csv", "--columns", "good=G,bad=B")
    shutil.rmtree(Path(os.environ["ACCEPTABILITY_HOME"]) / "runs")
    assert (
        "suite mine: it is neither in the catalog nor in a file"
        in run("reproduce", again[0]["signature"], code=1).stderr
    )
    (tmp_path / "mine.csv").write_text(MINE)
    done = run("reproduce", again[0]["signature"], "--data", "mine.csv", *options[2:], code=4)
    assert "nothing to compare with" in done.stderr
    expect = f"{again[0]['value']:.4f}"
    run("reproduce", again[0]["signature"], "--data", "mine.csv", *options[2:], "--expect", expect)
    run("reproduce", again[0]["signature"], "--data", "mine.csv", *options[2:], "--expect", "0.1234", code=3)
    (tmp_path / "mine.csv").write_text(MINE.replace("late", "early"))
    done = run("reproduce", again[0]["signature"], *("--data", "mine.csv"), *options[2:], code=1)
    assert re.search(r"suite mine: its hash is \w{12} here, not \w{12}: its content differs", done.stderr)


@pytest.mark.parametrize(
    "command", ["evaluate", "compare", "correlate", "contrasts", "measure"], ids=lambda command: str(command)
)
def test_a_report_needs_neither_the_columns_nor_the_file(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.csv").write_text(MINE)
    columns = "good=G,bad=B"
    texts = [text for line in MINE.splitlines()[1:] for text in line.split(",")[:2]]
    rows = [f"{text},{len(text)}" for text in texts]
    (tmp_path / "scores.csv").write_text("\n".join(["text,score", *rows]))
    options = {
        "evaluate": ["--columns", columns, "-m", "trigram"],
        "compare": ["--columns", columns, "-m", "trigram", "-m", "uniform"],
        "correlate": ["--columns", columns, "-m", "trigram", "-m", "uniform"],
        "contrasts": ["--columns", columns, "-m", "trigram"],
        "measure": ["--suite-columns", columns, "--scores", "scores.csv"],
    }
    run(command, "mine.csv", *options[command])
    (tmp_path / "mine.csv").unlink()
    assert json.loads(run("report", "latest", "--json").stdout)["notes"] == []
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    # Reports of correlations and of directionality show numbers only.
    assert ("The dogs were here." in page) is (command not in ("correlate", "contrasts"))
    (saved,) = list_saved_runs()[0]
    (suite,) = saved.inputs["suites"]
    assert suite["columns"] == {"good": "G", "bad": "B"}
    # Without what the run keeps, there would be nothing to reproduce from.
    assert {one.status for one in reproduce("latest")} == {"equal"}
    (saved.folder / suite["file"]).unlink()
    assert "equal" not in {one.status for one in reproduce("latest")}


def test_a_suite_of_the_catalog_is_kept_by_its_name(own_home: Path) -> None:
    suite = load_suite("starter")
    (result,) = evaluate(suite, ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    name = save([result], RunInputs([SuiteInput(suite, "starter")], ["uniform"]))
    files = {path.name for path in (own_home / "runs" / name).iterdir()}
    assert files == {"run.json", "results.json", "results.csv", "units.json", "units.csv"}
    described = json.loads((own_home / "runs" / name / "run.json").read_text())["inputs"]["suites"]
    assert described == [
        {"name": "starter", "signature": suite.signature, "columns": {}, "marks": {}, "reading": {}, "file": None},
    ]


def test_runs_of_the_version_before_are_read(own_home: Path) -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    path = own_home / "runs" / save([result]) / "run.json"
    content = json.loads(path.read_text())
    del content["inputs"]
    path.write_text(json.dumps(content))
    assert len(list_saved_runs()[0]) == 1
    assert reproduce("latest")[0].status == "equal"


def test_a_damaged_suite_of_a_run_is_not_measured(own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(MINE)
    suite = load_suite(str(tmp_path / "mine.csv"), columns={"good": "G", "bad": "B"})
    results = evaluate(suite, ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    name = save(results, RunInputs([SuiteInput(suite, str(tmp_path / "mine.csv"))], ["uniform"]))
    saved = own_home / "runs" / name / "suite-1.json.gz"
    saved.write_bytes(saved.read_bytes()[:-9])
    assert reproduce("latest")[0].status == "missing"


# --- every kind of result ---


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "starter", "-m", "trigram", "-M", "AUC", "--resample-by", "phenomenon", "--interval", "bca"),
        ("evaluate", "starter", "-m", "trigram", "-r", "slor(unigrams='wordfreq:en')", "-M", "PairAccuracy"),
        (
            "compare",
            "starter",
            "-m",
            "trigram",
            "-m",
            "uniform",
            "--by",
            "phenomenon",
            "--resamples",
            "100",
            "--draws",
            "99",
        ),
        ("compare", "starter", "-m", "trigram", "-m", "uniform", "-M", "MCC", "--resamples", "40", "--draws", "20"),
        ("correlate", "starter", "-m", "trigram", "-m", "uniform", "--of", "gaps", "--kind", "spearman"),
        ("contrasts", "starter", "-m", "trigram", "--by", "phenomenon", "--side", "right", "--resamples", "100"),
        ("score", "starter", "trigram", "--reduce", "mean_lp"),
        # Sentences with unknown words are left out, so that the hash in the signature is that of a part of the suite.
        ("evaluate", "starter", "-m", "trigram(unknown='omit')", "-M", "PairAccuracy", "--by", "phenomenon"),
        ("compare", "starter", "-m", "trigram(unknown='omit')", "-m", "uniform", "-M", "PairAccuracy", "--draws", "20"),
        ("correlate", "starter", "-m", "trigram(unknown='omit')", "-m", "uniform"),
        ("score", "starter", "trigram(unknown='omit')"),
    ],
    ids=lambda command: command[0],
)
def test_results_of_a_command_are_equal(run: Run, command: tuple[str, ...]) -> None:
    run(*command)
    again = json.loads(run("reproduce", "latest", "--json").stdout)
    assert {row["status"] for row in again} == {"equal"}
    assert all(row["rows"] for row in again)


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("MCC", "item"),
        ("Accuracy", ""),
        ("MCC(threshold='cv')", "item"),
        ("MCC(threshold=0)", ""),
        ("MCC(seeds=3, seed=5)", "item"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                ("MCC", ""),
                ("Accuracy", "item"),
                ("MCC(threshold='cv')", ""),
                ("MCC(threshold=0)", "item"),
                ("MCC(seeds=3, seed=5)", ""),
            ]
        ),
    ],
)
def test_thresholds_are_fitted_again_as_the_signature_says(text: str, by: str, move_away: Callable[[], None]) -> None:
    (result,) = evaluate("starter", ["trigram"], measure=[text], bootstrap=Bootstrap(40, by=by))
    move_away()
    numbers = {name: getattr(result, name) for name in ("value", "low", "high", "n")}
    (again,) = reproduce(result.signature, expected=numbers)
    assert again.status == "equal", again.differences
    assert "; ".join(result.notes) == again.rows[0]["notes"]


def test_a_comparison_of_the_version_before_is_equal() -> None:
    scores = [score("starter", model) for model in QUICK_MODELS]
    (result,) = compare("starter", scores, measure=["PairAccuracy"], bootstrap=Bootstrap(100), draws=50)
    # It had neither the scheme of the test, nor what was resampled, nor McNemar's test.
    fields = parse_signature(result.signature) | {"test": "permutation(draws=50,by=row,seed=0)"}
    fields["ci"] = fields["ci"].removeprefix("paired ")
    assert fields.pop("mcnemar") == "exact"
    signature = build_signature(fields.pop("measure"), fields)
    numbers = {name: getattr(result, name) for name in ("difference", "low", "high", "p", "only_first", "n")}
    assert reproduce(signature, expected=numbers)[0].status == "equal"


def test_a_fit_of_slln_lp_is_equal(run: Run, tmp_path: Path) -> None:
    sentences = [sentence.text for sentence in load_suite("starter").sentences[:40]]
    lines = [
        json.dumps({"text": one.text, "rating": one.score / len(one.text.split()) ** 0.5 + number % 3})
        for number, one in enumerate(judge(sentences, model="trigram"))
    ]
    (tmp_path / "rated.jsonl").write_text("\n".join(lines))
    fields = list_fields(run, "link", "rated.jsonl", "-m", "trigram", "--fit", "slln_lp", "--folds", "2")
    assert fields["measure"] == "fit_slln_lp(group='', folds=2, seed=0)"
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert row["status"] == "equal"


def test_a_fit_of_morcela_is_equal(run: Run, tmp_path: Path) -> None:
    # Ratings that rise with log-probability per word, by which MORCELA is determined.
    sentences = [sentence.text for sentence in load_suite("starter").sentences[:40]]
    lines = [
        json.dumps({"text": one.text, "rating": one.score / len(one.text.split()) + number % 3})
        for number, one in enumerate(judge(sentences, model="trigram"))
    ]
    (tmp_path / "rated.jsonl").write_text("\n".join(lines))
    fields = list_fields(run, "link", "rated.jsonl", "-m", "trigram", "--unigrams", "wordfreq:en", "--folds", "2")
    assert fields["folds"] == "2(by=row,sorted,shuffled,seed=0,mean r within folds)"
    assert fields["ratings"] == "standardised(ddof=0)"
    assert fields["ci"] == "paired percentile(0.95,resamples=1000,by=row,seed=0)"
    assert fields["test"] == "permutation(swap,standardised within folds,two-sided,draws=2000,by=row,seed=0)"
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert row["status"] == "equal"
    # The version before had neither an interval nor a test.
    former = change(build_signature(fields.pop("measure"), fields), ci="none", test="none")
    (again,) = reproduce(former, expected={"value": row["value"]}, data=[str(tmp_path / "rated.jsonl")])
    assert (again.status, again.rows[0]["p"]) == ("equal", None)
    omitting = list_fields(
        run, "link", "rated.jsonl", "-m", "trigram(unknown='omit')", "--unigrams", "wordfreq:en", "--folds", "2"
    )
    assert omitting["suite"] != fields["suite"], "no sentence was left out"
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert row["status"] == "equal"


def test_scores_of_a_file_are_measured_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(MINE)
    texts = [text for line in MINE.splitlines()[1:] for text in line.split(",")[:2]]
    lines = [f"{text},{len(text)},{-number}" for number, text in enumerate(texts)]
    (tmp_path / "scores.csv").write_text("\n".join(["sentence,long (words),late", *lines]))
    (tmp_path / "few.csv").write_text("\n".join(["text,score", *(",".join(line.split(",")[:2]) for line in lines[:5])]))
    suite = ("mine.csv", "--suite-columns", "good=G,bad=B")
    run("measure", *suite, "--scores", "scores.csv", "--columns", "text=sentence,score=long (words)")
    check_equal_with_and_without_run(run, tmp_path)
    run("measure", *suite, "--scores", "few.csv", "--partial", "-M", "PairAccuracy")
    check_equal_with_and_without_run(run, tmp_path)
    run("measure", *suite, "--scores", "scores.csv", "--columns", "text=sentence,score=late", "--where", "topic=a")
    check_equal_with_and_without_run(run, tmp_path)
    (tmp_path / "scores.csv").write_text("sentence,late\n")
    done = run("reproduce", "latest", code=1)
    assert re.search(r"scores.csv has the hash \w{12}, not \w{12}: its content differs", done.stderr)


def check_equal_with_and_without_run(run: Run, folder: Path) -> None:
    rows = json.loads(run("reproduce", "latest", "--json").stdout)
    assert {row["status"] for row in rows} == {"equal"}
    signature, value = rows[0]["signature"], rows[0]["value"]
    runs = Path(os.environ["ACCEPTABILITY_HOME"]) / "runs"
    runs.rename(folder / "hidden")
    (found,) = reproduce(
        signature,
        expected={"value": value},
        data=[str(folder / "mine.csv")],
        columns={"good": "G", "bad": "B"},
        look_in=[folder],
    )
    assert found.status == "equal", found.differences
    (folder / "hidden").rename(runs)


def test_a_table_of_unigrams_is_found_and_checked(run: Run, tmp_path: Path, move_away: Callable[[], None]) -> None:
    (tmp_path / "tables").mkdir()
    table = tmp_path / "tables" / "counts.tsv"
    table.write_text("word\tcount\nthe\t9\nwas\t3\n")
    reduction = ("-r", "slor(unigrams='tables/counts.tsv')", "-M", "PairAccuracy")
    run("evaluate", "starter", "-m", "trigram", *reduction, "--resamples", "0")
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert row["status"] == "equal"
    move_away()
    (without,) = reproduce(row["signature"])
    assert "the table of unigrams tables/counts.tsv is not here" in without.differences[0]
    (found,) = reproduce(row["signature"], data=[str(table)], expected={"value": row["value"]})
    assert found.status == "equal", found.differences
    table.write_text("word\tcount\nthe\t8\nwas\t3\n")
    (changed,) = reproduce(row["signature"], data=[str(table)])
    assert re.search(r"the table of unigrams is counts.tsv#\w+ here, not as in slor", changed.differences[0])


def test_a_run_of_a_stranger_opens_only_its_own_files_and_the_catalog(tmp_path: Path, own_home: Path) -> None:
    (tmp_path / "mine.csv").write_text(MINE.replace("G,B", "good,bad"))
    suite = load_suite(str(tmp_path / "mine.csv"))
    results = evaluate(suite, ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    name = save(results, RunInputs([SuiteInput(suite, str(tmp_path / "mine.csv"))], ["uniform"]))
    assert reproduce("latest")[0].status == "equal"
    theirs = tmp_path / "theirs" / name
    shutil.move(own_home / "runs" / name, theirs)
    assert reproduce(str(theirs))[0].status == "equal"
    content = json.loads((theirs / "run.json").read_text())
    for file in (None, "../outside.gz"):
        content["inputs"]["suites"][0]["file"] = file
        (theirs / "run.json").write_text(json.dumps(content))
        assert reproduce(str(theirs))[0].status == "missing", "the table lies elsewhere, and is not read"


def test_ratings_are_equal_and_a_changed_file_is_named(run: Run, tmp_path: Path) -> None:
    lines = [f"p{who},Sentence {n} is here.,{(who * n) % 5 + n % 3}" for who in range(1, 6) for n in range(1, 9)]
    (tmp_path / "answers.csv").write_text("\n".join(["worker,sentence,response", *lines]))
    done = run("ratings", "answers.csv", "--kind", "likert", "--columns", "participant=worker", "--json")
    signature = json.loads(done.stdout)["signature"]
    fields = parse_signature(signature)
    assert fields["ci"] == "student-t(0.95)"
    assert fields["reliability"] == "split-half(spearman-brown,splits=1000,seed=0,by=participant)"
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert (row["status"], row["rows"]) == ("equal", 14)
    with (tmp_path / "answers.csv").open("a") as out:
        out.write("\np9,Sentence 1 is here.,1\n")
    assert "its content differs" in run("reproduce", shorten_signature(signature), code=1).stderr


def test_choices_are_equal(run: Run, tmp_path: Path) -> None:
    lines = [f"p{who},i{n},{'good' if (who + n) % 3 else 'bad'}" for who in range(4) for n in range(3)]
    (tmp_path / "choices.csv").write_text("\n".join(["participant,pair,chosen", *lines]))
    run("ratings", "choices.csv", "--kind", "choice")
    (row,) = json.loads(run("reproduce", "latest", "--json").stdout)
    assert (row["status"], row["rows"]) == ("equal", 4)


def list_fields(run: Run, *command: str) -> dict[str, str]:
    """The fields of the first signature that a command prints."""
    return parse_signature(list_signatures(run(*command, "--signatures").stderr)[0])


MODELS = ("-m", "trigram", "-m", "uniform")


def test_signatures_of_correlations_have_their_interval_and_test(run: Run) -> None:
    by_item = list_fields(run, "correlate", "starter", *MODELS)
    assert by_item["ci"] == "fisher-z(0.95,se=jackknife,by=item)"
    assert by_item["test"] == "t(units-1) of fisher-z/jackknife,two-sided,by=item"
    pearson = list_fields(run, "correlate", "starter", *MODELS, "--resample-by", "row")
    assert pearson["ci"] == "fisher-z(0.95,se=1/sqrt(n-3))"
    assert (pearson["test"], pearson["correction"]) == ("t(n-2),two-sided", "holm,benjamini-hochberg(tests=1)")
    kendall = list_fields(run, "correlate", "starter", *MODELS, "--kind", "kendall", "--resample-by", "row")
    assert kendall["ci"] != pearson["ci"]
    assert kendall["test"] != pearson["test"]


def test_signatures_of_comparisons_have_their_interval_and_test(run: Run) -> None:
    plain = ("compare", "starter", *MODELS, "-M", "PairAccuracy", "--resamples", "100")
    fields = list_fields(run, *plain)
    assert fields["ci"] == "paired tango(0.95,by=item)"
    assert fields["test"] == "permutation(sign-flip,two-sided,draws=2000,by=item,seed=0)"
    assert fields["mcnemar"] == "exact"
    by_item = list_fields(run, *plain, "--resample-by", "phenomenon", "--interval", "bca")
    assert by_item["ci"] == "paired bca(0.95,resamples=100,by=phenomenon,seed=0)"
    assert "by=phenomenon" in by_item["test"]


@pytest.mark.parametrize("measure", ["perplexity(words='spaces')", "predictions", "probe"])
def test_a_kind_that_needs_more_says_what_to_run(measure: str) -> None:
    signature = build_signature(measure, {"model": "uniform(vocabulary=9)", "acceptability": __version__})
    (again,) = reproduce(signature)
    assert again.status == "not reproducible"
    assert "run `acceptability " in again.differences[0]


# --- what is missing ---


def test_everything_that_is_missing_is_named_in_a_line_each() -> None:
    (result,) = evaluate("starter", ["trigram"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    fields = parse_signature(result.signature)
    model = fields["model"].replace("trigram@", "bigram@")
    name, _, _ = fields["suite"].partition("#")
    (again,) = reproduce(change(result.signature, measure="Elegance()", suite=f"{name}#0123456789ab", model=model))
    assert again.status == "missing"
    suite, missing_model, plugin = again.differences
    assert re.fullmatch(r"suite starter: its hash is \w{12} here, not 0123456789ab: its content differs", suite)
    assert "ngram:bigram@5732531b85a8: no file or folder of this name and content" in missing_model
    assert plugin == "no installed package has the measure 'Elegance': install its plug-in"


def test_a_model_whose_files_have_changed_is_named_with_its_hash(tmp_path: Path) -> None:
    trigram = Path(list_named_models()["trigram"].make_spec().removeprefix("ngram:"))
    mine = tmp_path / "mine"
    shutil.copytree(trigram, mine)
    (result,) = evaluate("starter", [f"ngram:{mine}"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    expected = {"value": result.value}
    assert reproduce(result.signature, look_in=[tmp_path], expected=expected)[0].status == "equal"
    vocabulary = (mine / "vocabulary.json").read_text(encoding="utf-8")
    (mine / "vocabulary.json").write_text(vocabulary.replace('"upon"', '"upom"'), encoding="utf-8")
    digits = parse_signature(result.signature)["model"].partition("@")[2][:12]
    for place in ({"look_in": [tmp_path]}, {"look_in": [tmp_path], "models": [f"ngram:{mine}"]}):
        (changed,) = reproduce(result.signature, expected=expected, **place)  # type: ignore[arg-type]
        assert changed.status == "missing"
        assert re.search(rf"mine has the content hash \w{{12}}, not {digits}: it is another", changed.differences[0])


def test_an_expected_number_that_nothing_is_compared_with_is_no_agreement() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (again,) = reproduce(result.signature, expected={"mcc": 0.5})
    assert again.status == "different"
    assert "none of the numbers to compare with is one of these: measure, " in again.differences[0]


@pytest.mark.parametrize(
    "signature",
    [
        "PBC()|suite:{s}|model:{u}.lp()|ci:none|{v}",
        "PBC()|suite:{s}|model:{u}.lp() minus uniform(vocabulary=8).lp()|ci:none|test:none|{v}",
        "correlate(of='scores', kind='pearson')|suite:{s}|models:{u}.lp() and uniform(vocabulary=8).lp()|{v}",
        "fit_morcela(folds=2)|suite:{s}|model:{u}|reduction:morcela(unigrams='wordfreq:en', beta=1, gamma=1)|{v}",
        "fit_slln_lp(folds=2)|suite:{s}|model:{u}|reduction:slln_lp(alpha=0.5)|{v}",
        "contrasts|suite:starter+targets(left)#0|model:{u}.lp()#target|multi_token:False|cutoffs:0,0,0,0|ci:none|{v}",
        "calibration(temperature)|suite:{s}|fit:folds|model:{u}.log_odds()|bins:5|{v}",
        "score|suite:{s}|model:{u}.lp()|{v}",
        "study(paper='humans')|table:none|{v}",
        "ratings(kind='likert')|data:x.csv@0123456789ab|{v}",
    ],
    ids=lambda signature: str(signature).partition("|")[0],
)
def test_a_signature_that_was_copied_in_part_is_no_crash(signature: str) -> None:
    suite = load_suite("starter").signature
    whole = signature.format(s=suite, u="uniform(vocabulary=9)", v=f"acceptability:{__version__}")
    fields = parse_signature(whole)
    damaged = [{name: fields[name] for name in fields if name != left_out} for left_out in fields]
    damaged += [{**fields, name: wrong} for name in fields for wrong in ("", "x(", "-1", "#", "9" * 400)]
    damaged += [{**fields, "measure": f"{fields['measure'].partition('(')[0]}(nonsense=1)"}]
    for parts in damaged:
        if "measure" in parts:
            (again,) = reproduce(build_signature(parts.pop("measure"), parts))
            assert again.status != "equal"


def test_a_damaged_signature_of_judged_sentences_is_refused() -> None:
    fields = {"model": "uniform(vocabulary=9).lp()", "n": "1", "acceptability": __version__}
    for sentences in ("[", '"Cats sleep."', "[1]", "[" * 10_000):
        (again,) = reproduce(build_signature("judge", {"sentences": sentences, **fields}))
        assert again.status == "missing"
        assert "sentences of the signature" in again.differences[0]


def test_a_model_kind_of_a_plugin_is_named() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (again,) = reproduce(change(result.signature, model="quantum:cat@0123456789ab().lp()"))
    assert "no installed package has models of the kind 'quantum': install its plug-in" in again.differences[0]


def test_a_later_version_is_named_and_an_earlier_one_noted() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (later,) = reproduce(change(result.signature, acceptability="99.0"))
    assert (later.status, later.differences) == (
        "missing",
        (f"acceptability 99.0 is later than this one, {__version__}: update the package",),
    )
    (earlier,) = reproduce(change(result.signature, acceptability="0.0.1"), expected={"value": result.value})
    assert earlier.status == "equal"
    assert earlier.notes == (f"the signature is of acceptability 0.0.1, and this is {__version__}",)


def test_another_number_of_rows_is_a_difference() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (again,) = reproduce(change(result.signature, n="7"))
    assert again.status == "different"
    assert again.differences == ("n is 383 now, and 7 in the signature",)


def test_code_of_a_model_runs_only_if_the_user_names_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    model = "causal:theirs@0123456789ab(bos=None, trust_remote_code=True)"
    opened: list[str] = []

    def open_model(spec: str) -> object:
        opened.append(spec)
        return SimpleNamespace(signature=model)

    monkeypatch.setattr("acceptability.api.recomputation.load_model", open_model)
    # Also if a run says so, which may come from somebody else.
    save([replace(result, signature=change(result.signature, model=f"{model}.lp()"))], RunInputs(models=[model]))
    (again,) = reproduce("latest")
    assert again.status == "missing"
    assert "runs code of its own" in again.differences[0]
    assert opened == []
    # The stand-in has no files, but is the one that the user named.
    reproduce("latest", models=[model])
    assert set(opened) == {model}


def test_a_server_has_to_be_named() -> None:
    (result,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    (again,) = reproduce(change(result.signature, model="remote:gpt@0123456789ab(bos=None).lp()"))
    assert "name it: --model 'remote:URL#MODEL'" in again.differences[0]


def test_signatures_of_score_files_read_back(tmp_path: Path) -> None:
    suite = load_suite("starter")
    lines = [f"{sentence.id},{number},x" for number, sentence in enumerate(suite.sentences)]
    (tmp_path / "a@b (1).csv").write_text("\n".join(["key,surprisal (bits),model", *lines]))
    columns = [{"id": "key", "score": "surprisal (bits)"}]
    (result,) = measure_file(suite, tmp_path / "a@b (1).csv", ["PairAccuracy"], columns=columns, bootstrap=Bootstrap(0))
    signed = parse_score_signature(parse_signature(result.signature)["model"])
    assert signed is not None
    assert (signed.file, signed.columns, signed.partial, signed.model) == ("a@b (1).csv", tuple(columns), False, "x")
