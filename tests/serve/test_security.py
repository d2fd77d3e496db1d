"""Who may ask, how much, and what others cannot make a browser do."""

from __future__ import annotations

import json
import socket
from threading import Thread

import pytest

pytest.importorskip("fastapi", reason="the page needs the extra [web]")

import uvicorn
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from acceptability.cli import app as cli
from acceptability.errors import SpecError, StoreError, SuiteError
from acceptability.serve import jobs
from acceptability.serve.app import create_app
from acceptability.serve.jobs import encode_table, find_job, lock_jobs_folder
from acceptability.serve.security import Limits, RateLimiter, check_host, check_token, is_loopback, make_access_cookie

from .http_client import PAIRS, Visitor, settings, visiting

TOKEN = "a-long-enough-token-1"


def test_every_response_has_a_strict_content_policy(visitor) -> None:
    for address in ("/", "/table", "/static/page.js", "/nothing", "/api/models"):
        headers = visitor.get(address).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_pages_have_no_script_or_style_of_their_own(visitor) -> None:
    judged = visitor.post("/", {"first": "Cats sleep.", "second": "Sleep cats.", "model": "trigram"}).text
    for text in (judged, *(visitor.get(each).text for each in ("/table", "/suites", "/suites/starter", "/runs"))):
        assert "style=" not in text
        assert "<style" not in text
        assert "onclick" not in text
        assert text.count("<script") == 1


@pytest.mark.parametrize(
    "address", ["/", "/table", "/suites/starter", "/enter", "/jobs/20260101-000000-000000000000/stop"]
)
def test_a_form_without_the_visitors_value_is_refused(visitor, address: str) -> None:
    for value in ("", "x" * 32):
        answer = visitor.client.post(address, data={"visitor": value, "first": "Cats.", "model": "uniform"})
        assert answer.status_code == 403
        assert "does not belong to this browser" in answer.text


def test_a_form_without_cookies_is_refused() -> None:
    with visiting() as client:
        answer = client.post("/", data={"visitor": "", "first": "Cats.", "model": "uniform"})
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(visitor, headers) -> None:
    data = {"first": "Cats sleep.", "model": "uniform"}
    assert visitor.post("/", data, headers=headers).status_code == 403
    asked = {"sentences": ["Cats sleep."]}
    for more in ({}, {"X-Visitor": visitor.value}):
        assert visitor.client.post("/api/judge", json=asked, headers=headers | more).status_code == 403
    own = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}
    assert visitor.post("/", data, headers=own).status_code == 200
    assert visitor.client.post("/api/judge", json=asked, headers=own).status_code == 403
    assert visitor.client.post("/api/judge", json=asked, headers=own | {"X-Visitor": visitor.value}).status_code == 200


def test_a_program_needs_no_form() -> None:
    with visiting() as client:
        assert client.post("/api/judge", json={"sentences": ["Cats sleep."]}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[", "192.168.1.2"]
)
def test_a_foreign_host_header_is_refused(visitor, host: str) -> None:
    assert visitor.get("/", headers={"Host": host}).status_code == 421
    assert visitor.get("/api/models", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST"])
def test_host_headers_of_this_machine_are_accepted(host: str) -> None:
    check_host(host, loopback=True)


def test_another_address_needs_a_token() -> None:
    assert is_loopback("127.0.0.2")
    check_token("127.0.0.1", None)
    check_token("0.0.0.0", TOKEN)
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(SpecError, match="--token"):
            check_token(host, None)
    for weak in ("short", " " * 30, "ünïcödë-ünïcödë-ünïcödë"):
        with pytest.raises(SpecError, match="weak"):
            check_token("0.0.0.0", weak)


def test_the_command_refuses_to_start_without_a_token() -> None:
    result = CliRunner().invoke(cli, ["serve", "--host", "0.0.0.0", "--port", "0"], env={"ACCEPTABILITY_TOKEN": ""})
    assert isinstance(result.exception, SpecError)
    assert "token_urlsafe" in str(result.exception)


def test_the_token_grants_access() -> None:
    with visiting(host="0.0.0.0", token=TOKEN) as client:
        assert client.get("/api/models").status_code == 401
        assert client.get("/api/models", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/models", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        door = client.get("/runs")
        assert door.url.path == "/enter"
        visitor = Visitor(client)
        assert visitor.post("/", {"first": "Cats sleep.", "model": "uniform"}).status_code == 401
        assert visitor.post("/enter", {"token": "wrong"}).status_code == 401
        assert visitor.post("/enter", {"token": TOKEN}).url.path == "/"
        assert visitor.post("/", {"first": "Cats sleep.", "model": "uniform"}).status_code == 200
        assert TOKEN not in str(dict(client.cookies))


def test_guessing_the_token_is_slow() -> None:
    with visiting(host="0.0.0.0", token=TOKEN) as client:
        visitor = Visitor(client)
        answers = [visitor.post("/enter", {"token": str(index)}).status_code for index in range(15)]
        assert answers[:10] == [401] * 10
        assert set(answers[10:]) == {429}


@pytest.mark.parametrize("kind", ["header", "cookie"])
@pytest.mark.parametrize("address", ["/api/models", "/runs", "/nothing"])
def test_guesses_are_limited_at_every_address(kind: str, address: str) -> None:
    def claim(token: str) -> dict[str, str]:
        if kind == "header":
            return {"Authorization": f"Bearer {token}"}
        return {"Cookie": f"acceptability_access={make_access_cookie(token)}"}

    app = create_app(settings(host="0.0.0.0", token=TOKEN))
    guesser, other = (
        TestClient(app, base_url="http://host", client=(name, 1), follow_redirects=False) for name in ("a", "b")
    )
    with guesser:
        first = [guesser.get(address, headers=claim(f"guess {index}")).status_code for index in range(10)]
        assert set(first) == {401 if address.startswith("/api/") else 303}
        for guess in ("guess 11", TOKEN):
            assert guesser.get(address, headers=claim(guess)).status_code == 429
        assert guesser.get(address).status_code == first[0]
        assert guesser.get("/enter", headers=claim("guess 12")).status_code == 200
        assert other.get("/api/models", headers=claim(TOKEN)).status_code == 200
        assert other.get("/api/models", headers=claim("wrong")).status_code == 401


def test_only_wrong_credentials_count_as_guesses() -> None:
    with visiting(host="0.0.0.0", token=TOKEN) as client:
        assert {client.get("/api/models").status_code for _ in range(30)} == {401}
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert {client.get("/api/models", headers=right).status_code for _ in range(30)} == {200}


@pytest.mark.parametrize("claim", [TOKEN, f"Basic {TOKEN}", f"Bearer{TOKEN}", f"Bearer  {TOKEN}", "Bearer", "Bearer "])
def test_a_token_without_its_scheme_is_refused(claim: str) -> None:
    with visiting(host="0.0.0.0", token=TOKEN) as client:
        assert client.get("/api/models", headers={"Authorization": claim}).status_code == 401
        assert client.get("/api/models", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("address", ["/enterprise", "/enter/x", "/static", "/staticx"])
def test_an_address_that_starts_like_the_login_page_needs_a_token(address: str) -> None:
    with visiting(host="0.0.0.0", token=TOKEN) as client:
        answer = client.get(address, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
        assert client.post(address).status_code == 401
        assert client.get("/enter").status_code == 200
        assert client.get("/static/page.js").status_code == 200


def test_a_repeated_model_is_run_once(visitor) -> None:
    names, headers = ["uniform"] * 2_000, {"X-Visitor": visitor.value}
    found = visitor.client.post("/api/judge", json={"sentences": ["Cats."], "models": names}, headers=headers)
    assert [each["model"] for each in found.json()["models"]] == ["uniform"]
    order = {"name": "a.csv", "table": PAIRS, "models": [*names, "trigram", "uniform"]}
    assert visitor.client.post("/api/jobs", json=order, headers=headers).json()["models"] == ["uniform", "trigram"]
    page = visitor.post("/", {"first": "Cats sleep.", "model": ["uniform"] * 100})
    assert page.status_code == 200
    job = visitor.finished(visitor.post("/table", {"table": PAIRS, "model": ["uniform"] * 100}).url.path)
    assert job["models"] == ["uniform"]


@pytest.mark.parametrize(
    "address", ["/suites/starter?q=cats", "/runs/none", "/runs/none/report", "/api/runs/none", "/runs"]
)
def test_browsing_counts_for_the_rate_limit(narrow, address: str) -> None:
    answers = [narrow.get(address).status_code for _ in range(10)]
    assert 429 not in answers[:8]
    assert answers[8:] == [429, 429]
    assert narrow.post("/", {"first": "Cats.", "model": "uniform"}).status_code == 429


@pytest.mark.parametrize("address", ["/", "/enter", "/static/page.js", "/api/jobs/20260101-000000-000000000000"])
def test_cheap_pages_do_not_count_for_the_rate_limit(narrow, address: str) -> None:
    assert 429 not in {narrow.get(address).status_code for _ in range(30)}


HALF = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %b\r\nContent-Length: 90\r\n\r\n"


@pytest.mark.parametrize(
    ("address", "kind"), [(b"/api/judge", b"application/json"), (b"/", b"application/x-www-form-urlencoded")]
)
def test_an_incomplete_request_times_out(address: bytes, kind: bytes) -> None:
    config = uvicorn.Config(create_app(settings(limits=Limits(body_seconds=0.3))), log_level="warning")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with socket.create_connection(listener.getsockname(), timeout=120) as line:
                line.sendall(HALF % (address, kind) + b'{"sentences"')
                heard = b"".join(iter(lambda: line.recv(65_536), b""))
        finally:
            server.should_exit = True
            thread.join()
    assert heard.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in heard.lower()
    assert b"did not arrive within 0.3 seconds" in heard


def test_a_table_with_a_lone_surrogate_is_refused() -> None:
    order = json.dumps({"name": "a.csv", "table": "text,label\na\ud800,1\nb,0\n", "models": ["uniform"]})
    assert r"\ud800" in order
    with visiting() as client:
        answer = client.post("/api/jobs", content=order, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert "\n" not in answer.json()["problem"]
        assert client.get("/api/jobs").json() == []
    with pytest.raises(SuiteError, match="half of a character"):
        encode_table("a\ud800")


def test_too_large_a_request_is_refused(narrow) -> None:
    answer = narrow.post("/table", {"table": "x" * 4_000, "model": "uniform"})
    assert answer.status_code == 413
    assert "--max-megabytes" in answer.text
    assert "<h1>Too much</h1>" in answer.text


@pytest.mark.parametrize(
    ("address", "kind"), [("/api/judge", "application/json"), ("/", "application/x-www-form-urlencoded")]
)
def test_a_request_with_a_false_content_length_is_refused(narrow, address: str, kind: str) -> None:
    parts = (b"x" * 1_000 for _ in range(10))
    answer = narrow.client.post(address, content=parts, headers={"Content-Type": kind})
    assert answer.status_code == 413
    assert "larger than" in answer.text


def test_too_many_and_too_long_sentences_are_refused(narrow) -> None:
    asked = [["word " * 20], ["Cats sleep."] * 4]
    for sentences in asked:
        answer = narrow.client.post("/api/judge", json={"sentences": sentences}, headers={"X-Visitor": narrow.value})
        assert answer.status_code == 413
        assert "the limit is" in answer.json()["problem"]
    rows = "text,label\n" + "".join(f"Cat {index}.,{index % 2}\n" for index in range(7))
    answer = narrow.post("/table", {"table": rows, "model": "uniform"})
    assert answer.status_code == 413
    assert "--max-sentences" in answer.text
    assert narrow.post("/suites/starter", {"model": "uniform"}).status_code == 413


def test_too_many_requests_are_refused(narrow) -> None:
    answers = [narrow.post("/", {"first": "Cats.", "model": "uniform"}) for _ in range(10)]
    assert [each.status_code for each in answers[:8]] == [200] * 8
    assert answers[-1].status_code == 429
    assert "<h1>Too often</h1>" in answers[-1].text
    assert narrow.get("/").status_code == 200


def test_the_rate_limit_refills(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("acceptability.serve.security.time.monotonic", lambda: now[0])
    rate = RateLimiter(2)
    rate.check("a")
    rate.check("a")
    with pytest.raises(Exception, match="too many requests"):
        rate.check("a")
    rate.check("b")
    now[0] = 31.0
    rate.check("a")


def test_too_many_jobs_are_refused(monkeypatch) -> None:
    import threading

    from acceptability.serve.security import Limits

    go = threading.Event()
    monkeypatch.setattr(jobs, "evaluate", lambda *args, **options: go.wait(120) and [])
    with visiting(limits=Limits(jobs=2)) as client:
        visitor = Visitor(client)
        answers = [visitor.post("/table", {"table": PAIRS, "model": "uniform"}).status_code for _ in range(3)]
        go.set()
    assert answers == [200, 200, 429]


@pytest.mark.parametrize(
    "address",
    [
        "/runs/..%2f..%2fetc%2fpasswd",
        "/runs/../../etc/passwd",
        "/runs/%2e%2e/report",
        "/jobs/..%2f..%2fjobs",
        "/jobs/20260101-000000-000000000000%00",
        "/suites/../../../etc/passwd",
        "/suites/%2fetc%2fpasswd.csv",
        "/suites/hf:owner/name",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/api/runs/..%2f..",
        "/api/jobs/..%2f..",
    ],
)
def test_ids_cannot_leave_their_folder(visitor, address: str) -> None:
    answer = visitor.get(address)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert find_job(address.rpartition("/")[2]) is None


def test_errors_of_the_api_are_one_line(visitor) -> None:
    for body in ("{", "[]", '{"sentences": []}', '{"sentences": ["x"], "more": 1}', '{"sentences": ["\\ud800"]}'):
        answer = visitor.client.post(
            "/api/judge",
            content=body,
            headers={"Content-Type": "application/json", "X-Visitor": visitor.value},
        )
        assert answer.status_code in (200, 400), body
        assert "Traceback" not in answer.text
        assert "\n" not in answer.text
    page = visitor.get("/suites/starter?page=many")
    assert page.status_code == 400
    assert visitor.client.put("/").status_code == 405


def test_an_unexpected_error_shows_no_traceback(monkeypatch, caplog) -> None:
    def breaks() -> None:
        raise ZeroDivisionError("secret of the server")

    monkeypatch.setattr("acceptability.serve.app.list_saved_runs", breaks)
    with TestClient(create_app(settings()), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.get("/runs")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "See its log" in answer.text
    assert "content-security-policy" in answer.headers
    assert "secret of the server" in caplog.text


def test_two_servers_do_not_share_a_folder(own_home) -> None:
    with lock_jobs_folder(), pytest.raises(StoreError, match="another server uses"), lock_jobs_folder():
        pass
    with lock_jobs_folder():
        pass


def test_without_the_extra_the_error_names_it(monkeypatch) -> None:
    from acceptability.cli import serve
    from acceptability.errors import MissingExtra

    monkeypatch.setattr(serve, "is_importable", lambda name: False)
    result = CliRunner().invoke(cli, ["serve"])
    assert isinstance(result.exception, MissingExtra)
    assert "acceptability[web]" in str(result.exception)
