"""The page and its API, whatever is sent: an answer in order, or a refusal in one line; never a fault of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from acceptability.paths import home_folder

from .counting import SECONDS_EACH, Count, counted
from .inputs import HOSTILE
from .rule import check_message

pytestmark = pytest.mark.skipif(not find_spec("fastapi"), reason="the extra [web] is not installed")

ADDRESSES = (
    *("/", "/enter", "/table", "/suites", "/suites/starter", "/jobs/1", "/jobs/1/stop", "/runs", "/runs/1"),
    *("/runs/1/report", "/static/", "/api/models", "/api/judge", "/api/suites", "/api/jobs", "/api/jobs/1"),
    *("/api/runs", "/api/runs/1", "/api/openapi.json", "/nowhere"),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
HEADERS = ("content-type", "content-length", "origin", "host", "cookie", "authorization", "x-visitor", "x-part",
           "sec-fetch-site", "accept", "range", "transfer-encoding")  # fmt: skip
VALUES = (
    *("application/json", "multipart/form-data; boundary=x", "multipart/form-data", "text/plain; charset=utf-7"),
    *("application/x-www-form-urlencoded", "http://127.0.0.1:8765", "http://[", "null", "localhost", "[::1]:8000"),
    *("9" * 5_000, "-1", "0", "acceptability_visitor=x", "Bearer x", "bytes=0-", "bytes=99999999-", "cross-site"),
    *("verdicts", "multipart/form-data; boundary=x; charset=unicode_escape", "chunked", "a" * 10_000, "\xff"),
)
texts = st.sampled_from(HOSTILE) | st.text(max_size=20)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
orders = st.fixed_dictionaries(
    {},
    optional={
        "sentences": st.lists(texts, max_size=4) | anything,
        "models": st.lists(st.sampled_from(("trigram", "uniform", "other")) | texts, max_size=2) | anything,
        "name": st.sampled_from(("a.csv", "a.jsonl", "a.txt", "a.tsv", "starter", "../a.csv")) | texts,
        "table": texts.map("text,label\n{},1\nb,0\n".format) | texts | anything,
        "by": texts | anything,
    },
)
bodies = (
    orders.map(lambda order: json.dumps(order).encode())
    | anything.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=200)
    | texts.map(
        lambda text: (
            b'--x\r\ncontent-disposition: form-data; name="first"\r\n\r\n%b\r\n--x--\r\n'
            % text.encode("utf-8", "surrogatepass")
        )
    )
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from fastapi.testclient import TestClient

    from acceptability.serve.app import create_app
    from acceptability.serve.security import Limits, Settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEPTABILITY_HOME", str(tmp_path_factory.mktemp("server")))
        limits = Limits(per_minute=10**9, jobs=10**9, upload_bytes=100_000)
        told = Settings("127.0.0.1", 0, None, ("trigram", "uniform"), limits)
        with TestClient(create_app(told), base_url="http://127.0.0.1:8765", follow_redirects=False) as found:
            yield found


@pytest.fixture
def own_home() -> None:
    """The server keeps one home for all requests."""


def check_answer(answer: Any) -> None:
    """Refuse a fault of ours, a traceback, and an answer without what browsers are told to forbid."""
    assert answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    for name in ("content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy"):
        assert name in answer.headers
    if answer.status_code >= 400 and answer.content and "json" in answer.headers.get("content-type", ""):
        check_message(answer.json()["problem"])


def _rounds(one: Any, count: Count) -> None:
    number = 0
    while number == 0 or count.seconds < SECONDS_EACH:
        seed(number)(one)()
        number += 1


def _settings(count: Count) -> settings:
    checks = list(HealthCheck)
    return settings(max_examples=count.round, database=None, suppress_health_check=checks)


def test_whatever_is_sent_to_the_api_is_answered_or_refused(client: Any) -> None:
    with counted("the API of the server") as count:

        @_settings(count)
        @given(st.sampled_from(("/api/judge", "/api/jobs")), orders)
        def one(address: str, order: dict[str, Any]) -> None:
            count.inputs += 1
            sent = json.dumps(order).encode()
            answer = client.post(address, content=sent, headers={"content-type": "application/json"})
            check_answer(answer)
            if address == "/api/judge" and answer.status_code == 200:
                _check_texts(answer.json(), order["sentences"])

        _rounds(one, count)


def _check_texts(answer: Any, sentences: list[str]) -> None:
    for verdict in answer["models"]:
        if not verdict["problem"]:
            assert [each["text"] for each in verdict["sentences"]] == sentences


def test_whatever_is_requested_is_answered_or_refused(client: Any) -> None:
    with counted("raw requests to the server") as count:

        @_settings(count)
        @given(
            st.sampled_from(METHODS),
            st.sampled_from(ADDRESSES),
            texts,
            st.dictionaries(st.sampled_from(HEADERS), st.sampled_from(VALUES), max_size=4),
            bodies,
        )
        def one(method: str, address: str, more: str, headers: dict[str, str], body: bytes) -> None:
            from urllib.parse import quote

            count.inputs += 3
            end = quote(more.encode("utf-8", "surrogatepass"))
            coded = {name: value.encode("latin-1") for name, value in headers.items()}
            for address_and_query in (address, f"{address}{end}", f"{address}?page={end}&q={end}"):
                check_answer(client.request(method, address_and_query, content=body, headers=coded))
            client.cookies.clear()

        _rounds(one, count)


def test_the_api_does_as_its_description_says(client: Any) -> None:
    """Requests that another program makes from ``/api/openapi.json``: each is answered as the description says."""
    schemathesis = pytest.importorskip("schemathesis", reason="the extra [fuzz] is not installed")
    found = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    with counted("the API, by its description") as count:
        operations = [each.ok() for each in found.get_all_operations()]
        for operation in operations:
            _described(client, operation, count, SECONDS_EACH / len(operations))


def _described(client: Any, operation: Any, count: Count, most: float) -> None:
    start = count.seconds

    @_settings(count)
    @given(operation.as_strategy())
    def one(case: Any) -> None:
        count.inputs += 1
        asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8765")
        kept = {name: asked[name] for name in ("params", "json", "headers") if asked.get(name) is not None}
        answer = client.request(asked["method"], asked["url"], content=asked.get("data"), **kept)
        check_answer(answer)
        assert answer.status_code in (200, 201, 400, 401, 404, 405, 413, 429), answer.status_code

    number = 0
    while number == 0 or count.seconds - start < most:
        seed(number)(one)()
        number += 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"origin": "http://["}, 403), ({"origin": "null"}, 403), ({"content-length": "9" * 5_000}, 413)],
)
def test_a_header_that_cannot_be_read_is_refused(client: Any, headers: dict[str, str], status: int) -> None:
    answer = client.post("/api/judge", json={"sentences": ["Cats sleep."]}, headers=headers)
    assert answer.status_code == status
    check_answer(answer)


def test_a_table_of_any_text_comes_back_as_it_went_in(client: Any) -> None:
    import time

    texts = [f"{text[:500]} x" for text in HOSTILE]
    rows = [{"text": text, "label": index % 2} for index, text in enumerate(texts)]
    table = "".join(json.dumps(row) + "\n" for row in rows)
    job = client.post("/api/jobs", json={"name": "a.jsonl", "table": table, "models": ["uniform"]}).json()
    for _ in range(1200):
        job = client.get(f"/api/jobs/{job['id']}").json()
        if job["state"] not in ("waiting", "running"):
            break
        time.sleep(0.1)
    assert job["state"] == "done", job
    kept = (home_folder() / "runs" / job["run"] / "sentences.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["text"] for line in kept if line] == texts


def test_a_refusal_is_short_whatever_was_asked_for(client: Any) -> None:
    answer = client.get("/api/jobs/" + "9" * 5_000)
    assert answer.status_code == 404
    check_answer(answer)
