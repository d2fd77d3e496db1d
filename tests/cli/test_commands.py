"""The command line as a person types it: what comes out where, and what happens on bad input."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import program
from acceptability.suites import load_catalog

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(own_home: Path, tmp_path: Path) -> Run:
    """Run the real program, in an empty folder, with a home of its own."""

    def typed(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "200", **env}
        if env:
            command = [sys.executable, "-m", "acceptability", *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, env=known)
        else:
            done = program.typed([str(each) for each in arguments], tmp_path, known)
        assert done.returncode == code, done.stderr
        return done

    return typed


def fails(run: Run, message: str, *arguments: str, **env: str) -> None:
    """One clear line on stderr, nothing on stdout, exit status 1."""
    done = run(*arguments, code=1, **env)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_suites_are_listed_with_their_counts(run: Run) -> None:
    rows = {row["id"]: row for row in json.loads(run("suites", "--json").stdout)}
    for entry in load_catalog():
        assert (rows[entry.id]["sentences"], rows[entry.id]["contrasts"]) == (entry.sentences, entry.contrasts)
    table = run("suites").stdout
    assert all(entry.id in table for entry in load_catalog() if entry.folder != "multiblimp")
    # One row for a suite of a hundred languages.
    assert "multiblimp/…" in table
    assert "multiblimp/deu" not in table


def test_the_suites_of_a_language_are_listed(run: Run) -> None:
    names = [row["id"] for row in json.loads(run("suites", "--language", "de", "--json").stdout)]
    assert names == ["lau2017_smog/dewiki", "clams/de", "multiblimp/deu"]
    assert "multiblimp/deu" in run("suites", "--language", "deu").stdout
    fails(run, "There are suites in: ab, ", "suites", "--language", "xx")
    fails(run, "suites show is given a name", "suites", "--language", "de", "show", "blimp")


def test_a_suite_is_shown_exported_and_verified(run: Run, tmp_path: Path) -> None:
    assert "licence:" in run("suites", "show", "blimp").stdout
    assert "same sentence twice" in run("suites", "show", "blimp").stdout
    assert json.loads(run("suites", "show", "cola", "--json").stdout)[0]["id"] == "cola/train"
    run("suites", "export", "starter", "--out", "s.jsonl")
    row = json.loads((tmp_path / "s.jsonl").read_text().splitlines()[0])
    assert list(row) == ["id", "text", "label", "rating", "regions", "tags", "better_than"]
    shown = run("suites", "show", "s.jsonl").stdout
    assert "contrasts:   383" in shown
    assert "ok" in run("suites", "verify", "starter").stdout
    assert len(json.loads(run("suites", "fetch", "starter", "--json").stdout)[0]["files"]) == 2


def test_verify_names_the_file_with_one_changed_byte(run: Run, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "npi"
    folder.mkdir(parents=True)
    content = bytearray((data / "npi" / "environment=wilcox_sentences.tsv").read_bytes())
    content[-5] ^= 1
    (folder / "environment=wilcox_sentences.tsv").write_bytes(content)
    done = run("suites", "verify", "npi/wilcox", code=1, ACCEPTABILITY_DATA=str(tmp_path / "data"))
    assert "NOT OK" in done.stdout
    assert "environment=wilcox_sentences.tsv is not the published file" in done.stderr


def test_score_gives_rows_and_saves_a_run(run: Run, own_home: Path, tmp_path: Path) -> None:
    done = run("score", "starter", "uniform")
    rows = list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))
    assert list(rows[0]) == ["sentence_id", "text", "score"]
    assert len(rows) == 838
    run("score", "starter", "uniform", "--out", "out.csv", "--reduce", "mean_lp")
    with (tmp_path / "out.csv").open(newline="") as opened:
        assert {row["score"] for row in csv.DictReader(opened)} == {"-10.819778442382812"}
    tokens = json.loads(run("score", "starter", "uniform", "--tokens", "--json").stdout)
    assert set(tokens[0]) == {"sentence_id", "token", "start", "end", "logprob"}
    runs = json.loads(run("runs", "--json").stdout)
    assert len(runs) == 3
    assert runs[0]["id"] in done.stderr
    assert (own_home / "runs" / runs[0]["id"] / "results.csv").is_file()


def test_evaluate_prints_a_table_or_json(run: Run) -> None:
    done = run("evaluate", "starter", "-m", "uniform", "-M", "PairAccuracy(ties=0.5)", "--by", "phenomenon")
    assert "0.509 [" in done.stdout
    assert "Mean over phenomena" in done.stdout
    assert "|suite:starter#" not in done.stderr
    shown = run("evaluate", "starter", "-m", "uniform", "--digits", "1", "--percent", "--signatures")
    assert "18 %" in shown.stdout
    assert "|suite:starter#" in shown.stderr
    found = json.loads(run("evaluate", "starter", "-m", "uniform", "--json").stdout)
    wanted = {"measure", "model", "value", "low", "high", "n", "group", "signature"}
    assert all(wanted <= set(row) for row in found)
    # A suite of pairs, whose labels are not measured unless asked for.
    assert [row["measure"] for row in found] == ["PairAccuracy(ties=0.0)"]


@pytest.mark.slow
def test_score_by_word_in_a_precision_and_between_precisions(run: Run, causal_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,text\na,The cats sleep.\nb,The dog chased the cats.\n", encoding="utf-8")
    model = f"causal:{causal_dir}"
    words = json.loads(run("score", "s.csv", model, "--words", "--json").stdout)
    assert [row["word"] for row in words[:3]] == ["The", "cats", "sleep."]
    rows = {row["sentence_id"]: row["score"] for row in json.loads(run("score", "s.csv", model, "--json").stdout)}
    assert sum(row["logprob"] for row in words if row["sentence_id"] == "a") == pytest.approx(rows["a"], abs=1e-4)
    assert words[0]["surprisal_bits"] == pytest.approx(-words[0]["logprob"] / 0.693147, abs=1e-3)
    half = run("score", "s.csv", model, "--dtype", "bfloat16", "--precisions", code=1)
    assert "omit --dtype" in half.stderr
    told = run("score", "s.csv", model, "--precisions").stderr
    assert "bfloat16 against float32: largest difference" in told
    assert "dtype='bfloat16'" in run("score", "s.csv", model, "--dtype", "bfloat16", "--signatures").stderr
    assert "no precision to choose" in run("score", "s.csv", "uniform", "--dtype", "bfloat16", code=1).stderr
    assert "choose one" in run("score", "s.csv", model, "--words", "--tokens", code=1).stderr


def test_scores_in_another_order_than_the_rows_of_the_suite(run: Run, tmp_path: Path) -> None:
    """Joined by row number, each sentence would get the score of another one, without a word."""
    ratings = {f"Sentence {n} is here.": n * 7 % 10 for n in range(10)}
    suite = ["text,rating", *(f"{text},{rating}" for text, rating in ratings.items())]
    (tmp_path / "own.csv").write_text("\n".join(suite))
    rows = [f"{n},{text},{ratings[text]}" for n, text in enumerate(sorted(ratings, reverse=True), start=1)]
    (tmp_path / "scores.csv").write_text("\n".join(["sentence_id,text,score", *rows]))
    (tmp_path / "other.csv").write_text("\n".join(["sentence_id,text,score", *(row + "1" for row in rows)]))
    told = "were joined by text, since its ids only number the rows"
    done = run("measure", "own.csv", "--scores", "scores.csv", "-M", "Pearson", "--json")
    assert json.loads(done.stdout)[0]["value"] == pytest.approx(1)
    assert told in done.stderr
    assert told in json.loads(done.stdout)[0]["notes"]
    done = run("correlate", "own.csv", "--scores", "scores.csv", "--json")
    assert json.loads(done.stdout)[0]["r"] == pytest.approx(1)
    assert told in done.stderr
    files = ("--scores", "scores.csv", "--scores", "other.csv")
    (compared,) = json.loads(run("compare", "own.csv", *files, "-M", "Pearson", "--json").stdout)
    assert compared["first_value"] == pytest.approx(1)
    assert told in compared["notes"]
    (tmp_path / "wrong.csv").write_text("sentence_id,words,score\n1,Sentence 7 is here.,1\n3,Sentence 2 is here.,1\n")
    for command, option in (("measure", "--columns"), ("correlate", "--score-columns")):
        text = (option, "text=words")
        fails(run, "1 of 2 rows have another text", command, "own.csv", "--scores", "wrong.csv", *text)


def test_a_pearson_of_65_does_not_become_minus_21(run: Run, tmp_path: Path) -> None:
    """Rows in the opposite order, numbered as they stand: by number, no sentence but the middle has its own score."""
    ratings, scores = (3, 1, 1, 6, 7, 4, 3, 7, 2, 5), (4, 3, 3, 3, 5, 6, 2, 8, 3, 5)
    texts = [f"Sentence {letter} is here." for letter in "abcdefghij"]
    pairs = list(zip(texts, scores, strict=True))
    (tmp_path / "own.csv").write_text(
        "\n".join(["text,rating", *(f"{text},{rating}" for text, rating in zip(texts, ratings, strict=True))])
    )
    for name, rows in (("same.csv", pairs), ("reversed.csv", pairs[::-1])):
        lines = [f"{number},{text},{score}" for number, (text, score) in enumerate(rows, start=1)]
        (tmp_path / name).write_text("\n".join(["sentence_id,text,score", *lines]))
    (tmp_path / "answers.csv").write_text(
        "\n".join(
            ["participant,sentence,response"]
            + [
                f"p{shift},{text},{rating + shift}"
                for shift in (0, 1)
                for text, rating in zip(texts, ratings, strict=True)
            ]
        )
    )
    for name in ("same.csv", "reversed.csv"):
        (row,) = json.loads(run("measure", "own.csv", "--scores", name, "-M", "Pearson", "--json").stdout)
        assert row["value"] == pytest.approx(0.6495, abs=1e-4)
        (row,) = json.loads(run("correlate", "own.csv", "--scores", name, "--json").stdout)
        assert row["r"] == pytest.approx(0.6495, abs=1e-4)
        given = ("--kind", "likert", "--scale", "raw", "--splits", "40", "--scores", name)
        assert json.loads(run("ratings", "answers.csv", *given, "--json").stdout)["ceiling"][0][
            "correlation"
        ] == pytest.approx(0.6495, abs=1e-4)
    both = ("--scores", "same.csv", "--scores", "reversed.csv")
    (row,) = json.loads(run("compare", "own.csv", *both, "-M", "Pearson", "--json").stdout)
    assert (row["difference"], row["first_value"]) == (0, pytest.approx(0.6495, abs=1e-4))
    # Without texts, nobody can tell: a note says so, in every command.
    lines = [f"{number},{score}" for number, (_, score) in enumerate(pairs[::-1], start=1)]
    (tmp_path / "bare.csv").write_text("\n".join(["sentence_id,score", *lines]))
    done = run("measure", "own.csv", "--scores", "bare.csv", "-M", "Pearson", "--json")
    (row,) = json.loads(done.stdout)
    assert row["value"] == pytest.approx(-0.2093, abs=1e-4)
    told = "cannot be checked, since 10 of 10 rows have no text"
    assert (told in done.stderr, told in row["notes"]) == (True, True)
    assert told in run("correlate", "own.csv", "--scores", "bare.csv").stderr
    assert told in run("compare", "own.csv", *both, "--scores", "bare.csv", "-M", "Pearson").stderr
    assert told in run("ratings", "answers.csv", "--kind", "likert", "--scores", "bare.csv").stderr


def test_partial_scores_and_a_part_of_the_suite(run: Run, tmp_path: Path) -> None:
    run("score", "starter", "uniform", "--out", "all.csv")
    lines = (tmp_path / "all.csv").read_text().splitlines(keepends=True)
    (tmp_path / "part.csv").write_text("".join(lines[:11]))
    missing = (
        "partial: 828 of 838 sentences have no score of 'part' in part.csv; 828 sentences and 378 of 383 contrasts"
    )
    files = ("--scores", "part.csv")
    measures = ("-M", "PairAccuracy(ties=0.5)")
    fails(run, "leave these out (--partial", "measure", "starter", *files, *measures)
    done = run("measure", "starter", *files, *measures, "--partial", "--json")
    (row,) = json.loads(done.stdout)
    assert (row["n"], missing in row["notes"], missing in done.stderr) == (5, True, True)
    done = run("compare", "starter", "-m", "uniform", *files, *measures, "--partial", "--differing", "d.csv", "--json")
    (row,) = json.loads(done.stdout)
    assert (row["n"], row["difference"], missing in row["notes"], missing in done.stderr) == (5, 0, True, True)
    fails(run, "--partial is for files of scores", "compare", "starter", "-m", "uniform", "--partial")
    tag = ("--where", "phenomenon=npi_licensing")
    whole = json.loads(run("evaluate", "starter", "-m", "uniform", *measures, "--by", "phenomenon", "--json").stdout)
    group = next(row for row in whole if row["group"] == "phenomenon=npi_licensing")
    (row,) = json.loads(run("measure", "starter", "--scores", "all.csv", *measures, *tag, "--json").stdout)
    assert (row["value"], row["n"], row["suite"]) == (group["value"], group["n"], "starter[phenomenon=npi_licensing]")
    (row,) = json.loads(
        run("compare", "starter", "-m", "uniform", "--scores", "all.csv", *measures, *tag, "--json").stdout
    )
    assert (row["n"], row["suite"]) == (group["n"], "starter[phenomenon=npi_licensing]")
    fails(
        run, "nothing in suite 'starter' has phenomenon=npi", "compare", "starter", *files, "--where", "phenomenon=npi"
    )
    fails(run, "write TAG=VALUE", "measure", "starter", *files, "--where", "phenomenon")
    fails(run, "two values of 'item'", "measure", "starter", *files, "--where", "item=1", "--where", "item=2")


def test_measure_reads_scores_and_keeps_the_requested_order(run: Run, tmp_path: Path) -> None:
    run("score", "starter", "uniform", "--out", "s.jsonl")
    asked = ["PBC()", "PairAccuracy(ties=0.5)"]
    found = json.loads(
        run("measure", "starter", "--scores", "s.jsonl", "-M", asked[0], "-M", asked[1], "--json").stdout
    )
    assert [row["measure"] for row in found] == asked
    direct = json.loads(run("evaluate", "starter", "-m", "uniform", "-M", asked[0], "-M", asked[1], "--json").stdout)
    assert [row["value"] for row in found] == [row["value"] for row in direct]


def test_judge_reports_the_better_sentence(run: Run) -> None:
    done = run("judge", "Cats sleep.", "Cats sleep sleep.", "--model", "uniform")
    assert "better by 10.820: Cats sleep." in done.stdout
    assert "sleep. 15.6" in done.stdout
    found = json.loads(run("judge", "A b.", "B a.", "--model", "uniform", "--json").stdout)
    assert found["better"] is None


def test_judge_has_a_default_model() -> None:
    from acceptability.models import default_model, list_named_models

    assert default_model() in list_named_models()


def test_the_rows_behind_results_are_written_as_csv(run: Run, tmp_path: Path) -> None:
    run("evaluate", "starter", "-m", "uniform", "--resamples", "0")
    done = run("runs", "latest", "--csv", "rows.csv")
    assert "383 rows written to rows.csv" in done.stderr
    (folder,) = [row["folder"] for row in json.loads(run("runs", "--json").stdout)]
    assert (tmp_path / "rows.csv").read_bytes() == (Path(folder) / "units.csv").read_bytes()
    fails(run, "give both a run and a file", "runs", "latest")
    fails(run, "no run named 'later'", "runs", "later", "--csv", "rows.csv")


def test_compare_and_study(run: Run, tmp_path: Path, arpa: Path) -> None:
    found = json.loads(run("compare", "starter", "-m", "uniform", "-m", "uniform(vocabulary=9)", "--json").stdout)
    assert [row["difference"] for row in found] == pytest.approx([0.0], abs=1e-12)
    (saved,) = json.loads(run("runs", "--json").stdout)
    units = json.loads((Path(saved["folder"]) / "units.json").read_text())
    assert len(units) == 2 * 383
    (tmp_path / "mine.toml").write_text('suites = ["starter"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy"]\n')
    done = run("study", "run", "mine.toml", "--page", "mine.html")
    assert "Pair accuracy" in done.stdout
    assert "<table>" in (tmp_path / "mine.html").read_text()
    (tmp_path / "bad.toml").write_text('suits = ["starter"]\n')
    fails(run, "Did you mean 'suites'", "study", "run", "bad.toml")
    (tmp_path / "worse.toml").write_text("suites = 3\n")
    fails(run, "must be a list of texts", "study", "run", "worse.toml")


def test_models_doctor_and_version(run: Run) -> None:
    found = json.loads(run("models", "--json").stdout)
    assert {row["kind"] for row in found["kinds"]} >= {"causal", "masked", "ngram", "classifier"}
    assert "uniform" in {row["name"] for row in found["named"]}
    assert json.loads(run("doctor", "--json").stdout)["acceptability"] in run("--version").stdout


def test_a_users_own_pairs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("Gut,Schlecht,Thema\nEin Hund bellt laut.,Ein Hund.,kurz\n")
    done = run("evaluate", "mine.csv", "-m", "uniform", "--columns", "good=Gut,bad=Schlecht", "--json")
    assert json.loads(done.stdout)[0]["value"] == 0.0


def test_examples_in_notation_are_paired_checked_and_written_back(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ex.txt").write_text(
        "(1) a. He [has/*have] left.\n    b. ?He have gone.\n(2) a. It rains.\n    b. *It rain.\n"
    )
    shown = run("suites", "show", "ex.txt", "--json")
    assert json.loads(shown.stdout)[0]["sentences"] == 4
    assert "line 2: left out, marked ?" in shown.stderr
    assert json.loads(run("suites", "show", "ex.txt", "--marks", "?=0", "--json").stdout)[0]["sentences"] == 5
    run("suites", "export", "ex.txt", "--out", "again.txt")
    assert (tmp_path / "again.txt").read_text().splitlines()[0] == "He [has/*have] left."
    (tmp_path / "items.csv").write_text("id,text,label,item\n1,A b.,1,x\n2,B a.,0,x\n3,B b a.,0,x\n4,C.,1,y\n")
    made = json.loads(run("suites", "pair", "items.csv", "--out", "pairs.jsonl", "--json").stdout)
    assert made["contrasts"] == 2
    assert "too few items" in run("suites", "check", "pairs.jsonl").stdout
    kinds = [each["kind"] for each in json.loads(run("suites", "check", "pairs.jsonl", "--json").stdout)]
    assert "too few items" in kinds
    assert json.loads(run("evaluate", "ex.txt", "-m", "uniform", "-M", "PairAccuracy", "--json").stdout)[0]["n"] == 1
    (tmp_path / "bad.txt").write_text("He [has/*have left.\n")
    fails(run, "line 1, column 4: '[' is not closed", "suites", "show", "bad.txt")
    fails(run, "between 0.5 and 1", "suites", "check", "starter", "--effect", "2")
    fails(run, "marks are for a .txt file", "suites", "show", "items.csv", "--marks", "?=1")


def test_measures_and_reductions_are_listed(run: Run) -> None:
    assert "ADC" in {row["name"] for row in json.loads(run("measures", "--json").stdout)}
    assert "slor" in run("reductions").stdout


def test_a_study_page_has_one_column_for_each_measure(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.csv").write_text("good,bad\nA b c.,A.\nB c.,D e f.\nE f.,G h.\n")
    study = (
        'suites = ["mine.csv"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy", "PBC"]\nresamples = 100\nseed = 3\n'
        'interval = "percentile"\n'
    )
    (tmp_path / "sub" / "s.toml").write_text(study)
    done = run("study", "run", "sub/s.toml", "--page", "p.html", "--signatures")
    assert "resamples=100,by=item,seed=3" in done.stderr
    page = (tmp_path / "p.html").read_text()
    assert page.count("<thead>") == 1
    columns = re.findall(r'<th scope="col" class="number"[^>]*>([^<]+)</th>', page)
    assert columns[:2] == ["Pair accuracy", "Point-biserial r"]
    (tmp_path / "n.toml").write_text('suites = ["starter"]\nmodels = ["uniform"]\nresamples = "many"\n')
    fails(run, "resamples must be a whole number", "study", "run", "n.toml")


def test_the_best_of_three(run: Run) -> None:
    shown = run("judge", "A b c.", "A.", "A b.", "--model", "uniform").stdout
    assert "best by" in shown
    assert [line.split("  ")[1] for line in shown.splitlines() if line.startswith("-")] == ["A.", "A b.", "A b c."]


@pytest.mark.parametrize(("second_right", "disagrees"), [(2, True), (0, False)])
def test_an_interval_and_a_p_that_disagree_have_a_note(
    run: Run, tmp_path: Path, second_right: int, disagrees: bool
) -> None:
    # 9 discordant pairs against 2: the exact p is .065, and the score interval excludes 0.
    pairs = range(1, 31)
    (tmp_path / "p.csv").write_text("\n".join(["good,bad", *(f"A {n} b.,B {n} a." for n in pairs)]))
    for name, right in (("x", {*range(1, 10)}), ("y", {*range(10, 10 + second_right)})):
        rows = [f"{n}/{side},{int((side == 'good') == (n in right))}" for n in pairs for side in ("good", "bad")]
        (tmp_path / f"{name}.csv").write_text("\n".join(["sentence_id,score", *rows]))
    done = run("compare", "p.csv", "--scores", "x.csv", "--scores", "y.csv", "-M", "PairAccuracy")
    assert ("An interval and a p may disagree" in done.stderr + done.stdout) == disagrees


class TestBadInput:
    def test_unknown_names_get_a_suggestion(self, run: Run) -> None:
        fails(run, "Did you mean 'blimp'", "evaluate", "blmip", "-m", "uniform")
        fails(run, "Did you mean 'causal'", "evaluate", "starter", "-m", "casual:gpt2")
        fails(run, "Did you mean 'PairAccuracy'", "evaluate", "starter", "-m", "uniform", "-M", "PairAcuracy")
        fails(run, "Did you mean 'mean_lp'", "score", "starter", "uniform", "--reduce", "mean_pl")
        fails(run, "Did you mean 'starter'", "suites", "fetch", "startr")
        fails(run, "The engines are: local, ray", "score", "starter", "uniform", "--engine", "dask")
        fails(run, "Did you mean 'ray'", "evaluate", "starter", "-m", "uniform", "--engine", "rays")

    def test_suite_files(self, run: Run, tmp_path: Path) -> None:
        cases = {
            "missing.csv": ("words\nA b.\n", "has no column of sentences"),
            "twice.csv": ("id,text\n1,A b.\n1,C d.\n", "the id '1' is already used in line 2"),
            "pair.jsonl": ('{"id": "a", "text": "A b.", "better_than": ["z"]}\n', "no sentence of that id"),
            "empty.csv": ("id,text\n7,\n", "sentence '7' is empty"),
        }
        for name, (text, message) in cases.items():
            (tmp_path / name).write_text(text)
            fails(run, message, "evaluate", name, "-m", "uniform")
        (tmp_path / "latin.csv").write_bytes("text\nA b é.\n".encode("latin-1"))
        fails(run, "is not UTF-8", "evaluate", "latin.csv", "-m", "uniform")

    def test_score_files(self, run: Run, tmp_path: Path) -> None:
        cases = {
            "nan.csv": ("sentence_id,score\nnpi_licensing/1/good,nan\n", "score is 'nan'"),
            "inf.csv": ("sentence_id,score\nnpi_licensing/1/good,-inf\n", "score is '-inf'"),
            "lacks.csv": ("sentence_id,score\nnobody,1\n", "has no sentence with the id 'nobody'"),
            "few.csv": ("sentence_id,score\nnpi_licensing/1/good,1\n", "and none for 837 of the suite"),
        }
        for name, (text, message) in cases.items():
            (tmp_path / name).write_text(text)
            fails(run, message, "measure", "starter", "--scores", name)
        fails(run, "cannot read", "measure", "starter", "--scores", "nowhere.csv")

    def test_sentences_that_a_model_cannot_take(self, run: Run, tmp_path: Path, causal_dir: Path) -> None:
        (tmp_path / "long.csv").write_text("id,text\nx9,{}\n".format("cats " * 99))
        fails(run, "cannot score sentence 'x9'", "score", "long.csv", f"causal:{causal_dir}")
        fails(run, "is empty", "judge", " ", "--model", "uniform")

    def test_a_damaged_store_is_moved_aside_with_a_message(self, run: Run, own_home: Path) -> None:
        (own_home / "scores.sqlite").write_bytes(b"rubbish" * 999)
        done = run("score", "starter", "uniform")
        assert done.returncode == 0
        assert "was damaged (file is not a database). It is kept as scores.sqlite.broken-" in done.stderr

    def test_a_missing_extra(self, run: Run, tmp_path: Path) -> None:
        """A package that is not there, as a blocked import shows it."""
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None\n")
        blocked = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))
        message = "pip install 'acceptability[neural]'"
        fails(run, message, "judge", "A b.", "--model", "causal:gpt2", PYTHONPATH=blocked)
        (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.modules['ray'] = None\n")
        message = "'--engine ray' needs ray. Install with: pip install 'acceptability[cluster]'"
        fails(run, message, "score", "starter", "uniform", "--engine", "ray", PYTHONPATH=blocked)

    def test_paths_that_cannot_be_written_to(self, run: Run) -> None:
        fails(run, "there is no folder nowhere", "demo", "--page", "nowhere/x.html")
        fails(run, "there is no folder nowhere", "score", "starter", "uniform", "--out", "nowhere/x.csv")
        fails(run, "end in .jsonl", "suites", "export", "starter", "--out", "x.csv")
        fails(run, "cannot write", "suites", "export", "starter", "--out", "nowhere/x.jsonl")

    def test_options_that_would_be_ignored_are_refused(self, run: Run) -> None:
        fails(run, "write --json after", "suites", "--json", "show", "starter")
        fails(run, "choose one", "score", "starter", "uniform", "--out", "x.csv", "--json")
        fails(run, "id comes twice", "measure", "starter", "--scores", "x.csv", "--columns", "id=a,id=b")
        fails(run, "needs two models", "compare", "starter", "-m", "uniform")
        fails(run, "add --engine ray", "score", "starter", "uniform", "--address", "head:6379")
        fails(run, "add --engine ray", "evaluate", "starter", "-m", "uniform", "--address", "head:6379")
        twice = "ray(address='head:6379')"
        fails(run, "has an address already", "score", "starter", "uniform", "--engine", twice, "--address", "auto")
        fails(run, "seed is -1", "evaluate", "starter", "-m", "uniform", "--seed", "-1")

    def test_an_ascii_terminal_gets_escapes_and_no_error(self, run: Run) -> None:
        assert "starter" in run("suites", PYTHONIOENCODING="ascii").stdout

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
    def test_a_full_disk_behind_stdout(self, own_home: Path) -> None:
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "acceptability", "suites", "--json"]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("error: cannot write the output")
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
    def test_a_closed_stdout_is_no_error(self, closed: str, own_home: Path) -> None:
        line = f"{shlex.quote(sys.executable)} -m acceptability suites --json {closed}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stderr == ""

    def test_too_little_memory_is_one_line(self, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        code = (
            "from acceptability import cli\n"
            "def command(*given): raise MemoryError\n"
            "cli.build_outline = lambda: command\n"
            "cli.main()"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1
        assert (
            done.stderr
            == "error: there is not enough memory for this. Take a part of the file, or a machine with more.\n"
        )

    def test_usage_errors_keep_their_own_exit_status(self, run: Run) -> None:
        run("evaluate", code=2)
        run("nonsense", code=2)

    def test_wrong_options(self, run: Run) -> None:
        fails(run, "write MEANING=COLUMN", "evaluate", "starter", "-m", "uniform", "--columns", "text")
        fails(run, "ends in .csv", "score", "starter", "uniform", "--out", "x.xlsx")
        fails(run, "have no tag 'nothing'", "evaluate", "starter", "-m", "uniform", "--by", "nothing")
        fails(run, "Did you mean 'item'", "evaluate", "starter", "-m", "uniform", "--resample-by", "itm")


def test_asking_is_a_score_like_any_other(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("good,bad\nA b.,A b c.\nB c.,C b.\n")
    arguments = ("--measure", "PairAccuracy(ties=0.5)", "--json")
    # To a model that knows only length all answers are equal, and of two sentences in a frame it prefers the shorter.
    for method, accuracy in (("yes_no", 0.5), ("which", 0.5), ("in_template_lp", 0.75), ("ensemble", 0.75)):
        model = f"prompted:uniform(method='{method}', template='plain')"
        (row,) = json.loads(run("evaluate", "mine.csv", "--model", model, *arguments).stdout)
        assert row["model"] == model
        assert f"method='{method}'" in row["signature"]
        assert row["value"] == accuracy
    fails(run, "'word_order/33/single' is in no contrast", "score", "starter/word_order", model)
