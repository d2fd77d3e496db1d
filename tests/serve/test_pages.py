"""The pages as a visitor sees them."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("fastapi", reason="the page needs the extra [web]")

from acceptability.api.scoring import judge
from acceptability.store.runs import runs_folder

from .http_client import PAIRS, visiting

EVIL = "<script>alert(1)</script>"


def test_a_pair_is_judged_by_every_model(visitor) -> None:
    page = visitor.post(
        "/", {"first": "The boys were late.", "second": "The boys was late.", "model": ["trigram", "uniform"]}
    ).text
    first, second = judge(["The boys were late.", "The boys was late."], model="trigram")
    assert f"{first.score:.3f}" in page
    assert f"{second.score:.3f}" in page
    assert f"better by {first.score - second.score:.3f}" in page
    assert "1 of 2 models find the first sentence better, 0 the second; for 1 they are equal." in page


def test_one_sentence_is_judged_without_a_winner(visitor) -> None:
    page = visitor.post("/", {"first": "The boys were late.", "model": "trigram"}).text
    assert "Scores of the models" in page
    assert "better by" not in page


def test_only_the_verdicts_are_sent_to_a_script(visitor) -> None:
    page = visitor.post("/", {"first": "Cats sleep.", "model": "uniform"}, headers={"X-Part": "verdicts"}).text
    assert page.startswith("<section")
    assert "<html" not in page


def test_an_empty_form_is_an_error(visitor) -> None:
    for data in ({"first": " ", "model": "uniform"}, {"first": "Cats sleep."}):
        answer = visitor.post("/", data)
        assert answer.status_code == 400
        assert "nothing to judge" in answer.text
    assert visitor.post("/", {"first": "Cats sleep.", "model": "nobody"}).status_code == 404


def test_the_api_returns_the_scores_of_the_page(visitor) -> None:
    answer = visitor.client.post(
        "/api/judge",
        json={"sentences": ["The boys were late.", "The boys was late."], "models": ["trigram"]},
        headers={"X-Visitor": visitor.value},
    ).json()
    (verdict,) = answer["models"]
    assert verdict["better"] == 1
    assert verdict["sentences"][0]["score"] == pytest.approx(judge(["The boys were late."], model="trigram")[0].score)
    assert [token["token"] for token in verdict["sentences"][0]["tokens"]] == ["The", "boys", "were", "late", "."]
    assert visitor.get("/api/models").json()[0]["name"] == "trigram"


def test_the_api_describes_itself_and_loads_nothing_from_elsewhere(visitor) -> None:
    paths = visitor.get("/api/openapi.json").json()["paths"]
    assert {"/api/judge", "/api/jobs", "/api/suites", "/api/runs"} <= paths.keys()
    assert not any(path.startswith(("/runs", "/table")) or path == "/" for path in paths)
    assert visitor.get("/docs").status_code == visitor.get("/redoc").status_code == 404
    for address in ("/", "/table", "/suites", "/runs"):
        assert "//" not in visitor.get(address).text.replace("<!doctype", "")


def test_a_pasted_table_becomes_a_report(visitor) -> None:
    begun = visitor.post("/table", {"table": PAIRS, "model": ["trigram", "uniform"], "by": "phenomenon"})
    job = visitor.finished(str(begun.url))
    assert job["state"] == "done"
    assert job["percent"] == 100
    page = visitor.get(f"/jobs/{job['id']}").text
    assert "Open the report" in page
    assert "phenomenon=agreement" in page
    report = visitor.get(f"/runs/{job['run']}/report")
    assert "PairAccuracy" in report.text
    assert "sandbox" in report.headers["content-security-policy"]
    run = visitor.get(f"/runs/{job['run']}").text
    assert "The boys was late." in run
    found = visitor.get(f"/runs/{job['run']}?q=sleep+cats").text
    assert "Sleep cats." in found
    assert "The boys was late." not in found
    assert job["run"] in visitor.get("/runs").text
    assert visitor.get(f"/api/runs/{job['run']}").json()["results"][0]["n"] == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", PAIRS),
        ("mine.tsv", PAIRS.replace(",", "\t")),
        ("mine.jsonl", '{"text": "Cats sleep.", "label": 1}\n{"text": "Sleep cats.", "label": 0}\n'),
        ("mine.txt", "He [has/*have] left.\n"),
    ],
)
def test_a_file_is_uploaded(visitor, name: str, content: str) -> None:
    begun = visitor.post("/table", {"model": "uniform"}, files={"file": (name, content.encode())})
    assert visitor.finished(str(begun.url))["suite"] == name
    assert visitor.finished(str(begun.url))["state"] == "done"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"table": PAIRS}, "no model is chosen"),
        ({"table": " ", "model": "uniform"}, "there is no table"),
        ({"table": "text,label\nCats sleep.,maybe", "model": "uniform"}, "pasted.csv, line 2: label is"),
        ({"table": "text\nCats sleep.", "model": "uniform"}, "neither contrasts"),
        ({"table": PAIRS, "model": "uniform", "by": "nothing"}, "no tag"),
    ],
)
def test_an_invalid_table_is_refused_at_once(visitor, own_home, data, problem: str) -> None:
    answer = visitor.post("/table", data)
    assert answer.status_code == 400
    assert problem in answer.text
    assert str(own_home) not in answer.text
    assert "Traceback" not in answer.text
    assert not list((own_home / "jobs").glob("2*"))


def test_an_uploaded_file_name_cannot_leave_its_folder(visitor, own_home) -> None:
    begun = visitor.post("/table", {"model": "uniform"}, files={"file": ("../../../up.csv", PAIRS.encode())})
    assert visitor.finished(str(begun.url))["suite"] == "up.csv"
    assert not list(own_home.parent.glob("up.csv"))
    answer = visitor.post("/table", {"model": "uniform"}, files={"file": ("x.exe", PAIRS.encode())})
    assert answer.status_code == 400
    assert "ends in none of" in answer.text


def test_suites_are_listed_shown_and_searched(visitor) -> None:
    page = visitor.get("/suites").text
    assert '<a href="/suites/starter">starter</a>' in page
    assert "67,000" in page
    suite = visitor.get("/suites/starter").text
    assert "page 1 of" in suite
    last = visitor.get("/suites/starter?page=99999").text
    assert "Next" not in last
    found = visitor.get("/suites/starter", params={"q": "zzz nothing"}).text
    assert "0 items" in found


def test_a_suite_is_evaluated(visitor) -> None:
    begun = visitor.post("/suites/starter", {"model": "uniform", "by": "phenomenon"})
    job = visitor.finished(str(begun.url))
    assert job["state"] == "done"
    assert visitor.get(f"/api/runs/{job['run']}").json()["results"][0]["n"] == 383


def test_a_suite_that_is_not_available_is_reported(visitor, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    page = visitor.get("/suites/blimp").text
    assert "acceptability suites fetch blimp" in page
    assert visitor.post("/suites/blimp", {"model": "uniform"}).status_code == 400


def test_runs_of_the_command_line_are_shown_with_their_sentences(visitor) -> None:
    from acceptability.api.evaluation import evaluate
    from acceptability.store.runs import save_run
    from acceptability.store.unit_rows import collect_unit_rows

    results = evaluate("starter", ["uniform"], measure=["PairAccuracy"])
    rows = [each.row() for each in results]
    run = save_run(
        "evaluate", "evaluate starter", rows, collect_unit_rows(results), [each.signature for each in results]
    )
    page = visitor.get(f"/runs/{run.id}").text
    assert '<span class="mark mark-1">better</span>' in page
    assert "383 rows" in page


def test_runs_of_other_commands_and_damaged_runs_are_shown(visitor) -> None:
    from acceptability.store.runs import save_run

    other = save_run("compare", "compare", [{"first": 1.0}], [], [])
    assert "1 rows of results" in visitor.get(f"/runs/{other.id}").text
    assert visitor.get(f"/runs/{other.id}/report").status_code == 400
    (runs_folder() / other.id / "results.json").write_text("{")
    answer = visitor.get(f"/runs/{other.id}")
    assert answer.status_code == 400
    assert "damaged" in answer.text


def test_markup_in_data_is_escaped(visitor) -> None:
    table = f'good,bad,phenomenon\n"{EVIL} sleeps.",=cmd(),{EVIL}\n'
    page = visitor.post("/", {"first": EVIL, "second": "=cmd()", "model": ["trigram", "uniform"]}).text
    begun = visitor.post("/table", {"table": table, "model": "uniform", "by": "phenomenon"})
    job = visitor.finished(str(begun.url))
    assert job["state"] == "done"
    pages = [page, *(visitor.get(f"/runs/{job['run']}{rest}").text for rest in ("", "/report", f"?q={EVIL}"))]
    pages.append(visitor.get(f"/jobs/{job['id']}").text)
    pages.append(visitor.post("/table", {"table": f"text,label\nCats sleep.,{EVIL}", "model": "uniform"}).text)
    pages.append(visitor.get("/runs/<script>").text)
    for text in pages:
        assert EVIL not in text
        assert "&lt;script&gt;" in text
    assert "=cmd()" in pages[1]
    assert json.dumps(EVIL)[1:-1] not in visitor.get("/suites", params={"q": EVIL}).text


def test_jobs_resume_after_a_restart(own_home) -> None:
    from acceptability.serve.jobs import JobSpec, all_jobs, create_job, save_job

    job = create_job(JobSpec("pairs.csv", True, ("uniform",)), PAIRS.encode())
    from dataclasses import replace

    save_job(replace(job, state="running", done=1, total=4))
    from .http_client import Visitor

    with visiting() as client:
        assert Visitor(client).finished(f"/jobs/{job.id}")["state"] == "done"
    assert [each.state for each in all_jobs()] == ["done"]


def test_the_job_of_a_stopped_server_resumes_in_the_next(monkeypatch) -> None:
    import threading

    from acceptability.serve import jobs
    from acceptability.serve.jobs import all_jobs

    from .http_client import Visitor

    begun, real = threading.Event(), jobs.evaluate

    def slow(*args, progress, **options):
        begun.set()
        # The report of progress that follows the shutdown ends the evaluation.
        for _ in range(12_000):
            progress("uniform", 0, 1)
            time.sleep(0.01)
        raise AssertionError("the server does not stop")

    monkeypatch.setattr(jobs, "evaluate", slow)
    with visiting() as client:
        Visitor(client).post("/table", {"table": PAIRS, "model": "uniform"})
        assert begun.wait(120)
    assert [each.state for each in all_jobs()] == ["waiting"]
    monkeypatch.setattr(jobs, "evaluate", real)
    with visiting() as client:
        assert Visitor(client).finished(f"/jobs/{all_jobs()[0].id}")["state"] == "done"


def test_a_visitor_stops_a_job(visitor, monkeypatch) -> None:
    import threading

    from acceptability.serve import jobs

    go, real = threading.Event(), jobs.evaluate

    def slow(*args, **options):
        go.wait(120)
        return real(*args, **options)

    monkeypatch.setattr(jobs, "evaluate", slow)
    running = visitor.post("/table", {"table": PAIRS, "model": "uniform"})
    waiting = visitor.post("/table", {"table": PAIRS, "model": "uniform"})
    for each in (waiting, running):
        visitor.post(f"{each.url.path}/stop", {})
    go.set()
    assert visitor.finished(str(running.url))["state"] == "stopped"
    assert visitor.finished(str(waiting.url))["state"] == "stopped"
    assert "Stopped" in visitor.get(running.url.path).text


def test_a_failed_job_has_its_reason_in_one_line(visitor, monkeypatch) -> None:
    from acceptability.errors import ModelError
    from acceptability.serve import jobs

    def fails(*args, **options):
        raise ModelError("the model\nis gone")

    monkeypatch.setattr(jobs, "evaluate", fails)
    begun = visitor.post("/table", {"table": PAIRS, "model": "uniform"})
    job = visitor.finished(str(begun.url))
    assert (job["state"], job["problem"]) == ("failed", "the model is gone")


def test_an_unexpected_error_in_a_job_is_logged_and_the_next_job_runs(visitor, monkeypatch, caplog) -> None:
    from acceptability.serve import jobs

    real = jobs.evaluate

    def breaks(*args, **options):
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(jobs, "evaluate", breaks)
    begun = visitor.post("/table", {"table": PAIRS, "model": "uniform"})
    assert "failed unexpectedly" in visitor.finished(str(begun.url))["problem"]
    monkeypatch.setattr(jobs, "evaluate", real)
    begun = visitor.post("/table", {"table": PAIRS, "model": "uniform"})
    assert visitor.finished(str(begun.url))["state"] == "done"
    assert "a fault of ours" in caplog.text
