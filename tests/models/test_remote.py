"""Models behind a server: right scores or a clear error, whatever the server and the network do."""

from __future__ import annotations

import os
import random
import sys
import types
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability import load_model, score
from acceptability.api.scoring import iter_model_outputs
from acceptability.errors import ModelError, SpecError
from acceptability.models.remote import Remote
from acceptability.models.remote.completions_client import (
    CompletionsServer,
    RetryPolicy,
    _report_former_key,
    find_api_key,
    name_key_variable,
)
from acceptability.store.scores import ScoreStore
from acceptability.types import Query, Sentence, Suite, TokenScores
from faulty_server import FAULTS, TOKEN, Faulty, Handler, served, truth

TEXTS = ["The cats sleep.", "Who did the dog chase?", "He is sleeping, she isn't.", "I think that it rains."]


def model(faulty: Faulty, *, waited: list[float] | None = None, **options: object) -> Remote:
    """Return the model of a server, with a retry policy that does not really sleep."""
    sleep = (waited if waited is not None else []).append
    retry_policy = RetryPolicy(
        timeout=options.pop("timeout", 120.0), tries=options.pop("tries", 4), sleep=sleep, jitter=lambda: 1.0
    )
    server = CompletionsServer(faulty.url, retry_policy, connections=options.pop("connections", 2))
    return Remote(server, "toy", **{"batch": 2} | options)


def run_model(model: Remote, queries: Sequence[Query | str]) -> list[TokenScores]:
    return model.run(model.encode([Query(each) if isinstance(each, str) else each for each in queries]))


def assert_scores_are_right(found: Sequence[TokenScores], before: str = "<|s|>", texts: Sequence[str] = TEXTS) -> None:
    assert [each.text for each in found] == list(texts)
    for each in found:
        skipped = len(TOKEN.findall(each.text)) - len(each.tokens)
        assert skipped == (0 if before else 1)
        assert each.logprobs == pytest.approx(truth(each.text, before)[skipped:], abs=1e-6)
        assert each.logprobs.dtype == np.float32
        assert tuple(each.text[slice(*span)] for span in each.offsets) == each.tokens


# Requests, and which of the echoed tokens are scored.


def test_every_token_gets_its_log_probability(toy_server) -> None:
    remote = model(toy_server)
    assert_scores_are_right(run_model(remote, TEXTS))
    assert remote.signature.endswith("(bos='server')")
    body = toy_server.bodies[-1]
    assert body["echo"] is True
    assert body["temperature"] == 0
    assert body["model"] == "toy"
    assert body["max_tokens"] == 1


def test_a_server_without_a_start_token_leaves_the_first_token_unscored() -> None:
    with served() as faulty:
        remote = model(faulty)
        assert_scores_are_right(run_model(remote, TEXTS), before="")
        assert remote.signature.endswith("(bos=None)")
        with pytest.raises(ModelError, match="scores no token of 'Cats'.*bos='TOKEN'"):
            run_model(remote, ["Cats"])


def test_a_given_start_token_is_sent_and_not_scored() -> None:
    with served() as faulty:
        remote = model(faulty, start="<|begin|>")
        assert_scores_are_right(run_model(remote, TEXTS), before="<|begin|>")
        assert remote.signature.endswith("(bos='<|begin|>')")


def test_the_first_token_can_be_left_unscored_everywhere(toy_server) -> None:
    (found,) = run_model(model(toy_server, start=None), TEXTS[:1])
    assert found.tokens[0] == " cats"
    assert found.logprobs == pytest.approx(truth(TEXTS[0], "<|s|>")[1:], abs=1e-6)


def test_a_start_token_that_the_server_hides_is_refused() -> None:
    with served(own_start="<|s|>", shows_start=False) as faulty:
        assert model(faulty).signature.endswith("(bos=None)")
        with pytest.raises(ModelError, match="echoes no start token of its own"):
            run_model(model(faulty, start="server"), TEXTS)
        assert_scores_are_right(run_model(model(faulty, start="<|begin|>"), TEXTS), before="<|s|><|begin|>")


def test_only_the_text_after_its_context_is_scored(toy_server) -> None:
    (found,) = run_model(model(toy_server), [Query("It sleeps.", "Here is the cat.")])
    assert found.tokens == (" It", " sleeps", ".")
    assert found.offsets == ((0, 2), (2, 9), (9, 10))
    assert found.logprobs == pytest.approx(truth("Here is the cat. It sleeps.", "<|s|>")[-3:], abs=1e-6)


def test_only_the_target_is_scored(toy_server) -> None:
    (found,) = run_model(model(toy_server), [Query("It sleeps now.", "Hm.", (3, 9))])
    assert (found.tokens, found.offsets) == ((" sleeps",), ((2, 9),))


def test_one_text_goes_into_a_request_where_the_server_takes_no_lists() -> None:
    with served(own_start="<|s|>", takes_lists=False) as faulty:
        remote = model(faulty)
        assert_scores_are_right(run_model(remote, TEXTS))
        assert not remote.capabilities.takes_lists
        assert all(isinstance(body["prompt"], str) for body in faulty.bodies[-4:])


def test_a_server_without_generated_tokens_and_offsets_works() -> None:
    with served(own_start="<|s|>", gives_offsets=False, adds_token=False) as faulty:
        assert_scores_are_right(run_model(model(faulty), TEXTS))


def test_all_connections_share_a_batch(toy_server) -> None:
    remote = model(toy_server, connections=4, batch=16)
    assert remote.budget == 4 * 16 * 16
    run_model(remote, TEXTS)
    assert [body["prompt"] for body in toy_server.bodies[-4:] if isinstance(body["prompt"], list)] == []


# Transient errors and rejected requests.


@pytest.mark.parametrize("fault", FAULTS)
def test_one_transient_error_costs_one_retry(toy_server, fault: str) -> None:
    waited: list[float] = []
    remote = model(toy_server, connections=1, batch=4, waited=waited)
    _ = remote.capabilities
    toy_server.faults.append(fault)
    assert_scores_are_right(run_model(remote, TEXTS))
    assert waited == {"shuffled": [], "429": [7.0]}.get(fault, [0.5])


def test_a_timeout_is_retried(toy_server) -> None:
    remote = model(toy_server, connections=1, batch=4, timeout=0.5, tries=20)
    _ = remote.capabilities
    toy_server.faults.append("slow")
    assert_scores_are_right(run_model(remote, TEXTS))


def test_retries_end_with_an_error_that_says_what_to_do(toy_server) -> None:
    waited: list[float] = []
    remote = model(toy_server, connections=1, batch=4, waited=waited)
    _ = remote.capabilities
    toy_server.faults.extend(["nan"] * 4)
    with pytest.raises(ModelError) as error:
        run_model(remote, TEXTS)
    message = str(error.value)
    assert f"{toy_server.url}/completions, request for 'The cats sleep.' and 3 more" in message
    assert "the log-probability of '.' is nan. Gave up after 4 attempts" in message
    assert message.endswith("a second run requests only what is missing.")
    assert waited == [0.5, 1.0, 2.0]


def test_back_off_is_exponential_with_jitter() -> None:
    waited: list[float] = []
    retry_policy = RetryPolicy(first_pause=1.0, sleep=waited.append, jitter=random.Random(1).random)
    for attempt in range(1, 12):
        retry_policy.wait(attempt, None)
    longest = [min(2.0**power, 60.0) for power in range(11)]
    assert all(most / 2 <= each <= most for each, most in zip(waited, longest, strict=True))
    assert len({each / most for each, most in zip(waited, longest, strict=True)}) == 11


@pytest.mark.parametrize("status", ["400", "401", "404", "501", "302"])
def test_a_rejected_request_is_final_and_its_message_hides_the_key(toy_server, monkeypatch, status: str) -> None:
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1", "s3cret-key")
    waited: list[float] = []
    remote = model(toy_server, connections=1, batch=4, waited=waited)
    _ = remote.capabilities
    toy_server.faults.extend([status] * 5)
    with pytest.raises(
        ModelError, match=f"request for 'The cats sleep.'.*: it answered {status}: refused: Bearer …"
    ) as error:
        run_model(remote, TEXTS)
    assert toy_server.headers[-1]["Authorization"] == "Bearer s3cret-key"
    assert "s3cret-key" not in str(error.value) + remote.signature + repr(remote)
    assert waited == []


def test_a_rejected_list_is_sent_text_by_text(toy_server) -> None:
    """A text that is too long is then named in the error."""
    remote = model(toy_server, connections=1, batch=4)
    _ = remote.capabilities
    toy_server.faults.append("400")
    assert_scores_are_right(run_model(remote, TEXTS))
    toy_server.faults.extend(["400", "", "400"])
    with pytest.raises(ModelError, match="request for 'Who did the dog chase\\?': it answered 400"):
        run_model(remote, TEXTS)


@pytest.fixture
def no_keys(monkeypatch) -> None:
    for name in [name for name in os.environ if name.startswith("ACCEPTABILITY_KEY_")]:
        monkeypatch.delenv(name)
    for name in ("OPENAI_API_KEY", "ACCEPTABILITY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    _report_former_key.cache_clear()


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("former", ["OPENAI_API_KEY", "ACCEPTABILITY_API_KEY"])
def test_a_key_of_another_host_is_not_sent_and_one_line_says_what_to_set(
    toy_server, monkeypatch, caplog, former
) -> None:
    monkeypatch.setenv(former, "s3cret")
    for _ in range(2):
        _ = model(toy_server).version
    assert "Authorization" not in toy_server.headers[-1]
    assert [record.getMessage() for record in caplog.records if record.name.endswith("completions_client")] == [
        f"{former} is not sent to 127.0.0.1; if it needs a key, set ACCEPTABILITY_KEY_127_0_0_1 "
        "(to an empty text if not)"
    ]
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1", "own")
    _ = model(toy_server).version
    assert toy_server.headers[-1]["Authorization"] == "Bearer own"
    assert "s3cret" not in caplog.text


@pytest.mark.usefixtures("no_keys")
def test_an_empty_key_means_none_and_is_not_remarked_on(toy_server, monkeypatch, caplog) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1", "")
    _ = model(toy_server).version
    assert "Authorization" not in toy_server.headers[-1]
    assert "OPENAI_API_KEY" not in caplog.text


@pytest.mark.usefixtures("no_keys")
def test_openais_key_goes_to_openai_only(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    assert find_api_key("https://api.openai.com/v1") == "openai"
    for host in ("api.openai.com.example.org", "openai.com", "llm.example.org", "localhost"):
        assert find_api_key(f"https://{host}/v1") == ""
    monkeypatch.setenv("ACCEPTABILITY_KEY_LLM_EXAMPLE_ORG", "own")
    assert find_api_key("https://LLM.example.org:8443/v1") == "own"
    assert find_api_key("https://other.example.org/v1") == ""


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_neither_key_nor_sentences_to_another_host(toy_server, monkeypatch, status: int) -> None:
    """Even if the other host has a key of its own."""
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1", "s3cret")
    monkeypatch.setenv("ACCEPTABILITY_KEY_LOCALHOST", "other")
    remote = model(toy_server)
    _ = remote.capabilities
    with served(own_start="<|s|>") as elsewhere:
        target = elsewhere.url.replace("127.0.0.1", "localhost") + "/completions"
        answer = Handler._answer
        monkeypatch.setattr(
            Handler,
            "_answer",
            lambda handler, _, text, *__, **___: answer(handler, status, text, {"Location": target}),
        )
        with pytest.raises(ModelError, match=f"it answered {status}"):
            run_model(remote, TEXTS)
        assert (elsewhere.headers, elsewhere.bodies) == ([], [])
    assert toy_server.headers[-1]["Authorization"] == "Bearer s3cret"


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com.evil.example/v1",
        "https://api-openai-com.evil.example/v1",
        "https://evil.example/api.openai.com/v1",
        "https://api.openai.com./v1",
        "https://api.openai.com%2eevil.example/v1",
        "https://xn--api-openai-.com/v1",
    ],
)
def test_a_host_that_looks_like_openais_gets_no_key(monkeypatch, address: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    assert find_api_key(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com@evil.example/v1",
        "https://api.openai.com:443@evil.example/v1",
        "https://api.openai.com;@evil.example/v1",
        "https://api.openai.com\\@evil.example/v1",
        "https://evil.example\\.api.openai.com/v1",
        "https://api.openai.com?@evil.example/v1",
        "https://api.openai.com%2eevil.example/v1",
        "https://\u0430pi.openai.com/v1",
        "https://api\u3002openai\u3002com/v1",
        "https://api.openai.com\u2100.evil.example/v1",
    ],
)
def test_an_address_that_hides_its_host_is_refused(address: str) -> None:
    with pytest.raises(SpecError, match="must not contain a key|no address"):
        load_model(f"remote:{address}#m")


def test_two_hosts_never_share_the_variable_of_a_key() -> None:
    hosts = (
        "llm.example.org",
        "llm-example.org",
        "llm--example.org",
        "l-lm.example.org",
        "llm.example-org",
        "llm_example.org",
        "xn--llm-example.org",
        "127.0.0.1",
        "127-0-0-1",
        "::1",
        "localhost",
        "api-openai.com",
        "api.openai.com",
    )
    assert len({name_key_variable(host) for host in hosts}) == len(hosts)


@pytest.mark.usefixtures("no_keys")
def test_a_key_is_not_sent_over_plain_http_to_another_machine(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("ACCEPTABILITY_KEY_LLM_EXAMPLE_ORG", "s3cret")
    for host in ("api.openai.com", "llm.example.org"):
        with pytest.raises(ModelError, match=f"the key of {host} is not sent over plain http") as error:
            _ = load_model(f"remote:http://{host}/v1#m").signature
        assert "s3cret" not in str(error.value)
    for host, variable in (("127.0.0.1", "127_0_0_1"), ("[::1]", "__1"), ("localhost", "LOCALHOST")):
        monkeypatch.setenv(f"ACCEPTABILITY_KEY_{variable}", "own")
        assert find_api_key(f"http://{host}:8000/v1") == "own"
    # Names that only look like this machine.
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1_EXAMPLE_ORG", "s3cret")
    with pytest.raises(ModelError, match="plain http"):
        find_api_key("http://127.0.0.1.example.org/v1")


@pytest.mark.usefixtures("no_keys")
def test_a_key_for_this_machine_does_not_go_through_a_proxy(toy_server, monkeypatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ACCEPTABILITY_KEY_127_0_0_1", "own")
    _ = model(toy_server).version
    assert toy_server.headers[-1]["Authorization"] == "Bearer own"


@pytest.mark.usefixtures("no_keys")
def test_a_key_may_be_in_the_keyring(monkeypatch) -> None:
    class KeyringError(Exception):
        pass

    def get_password(service: str, host: str) -> str | None:
        if host == "locked.example.org":
            raise KeyringError("it is locked")
        return {("acceptability", "llm.example.org"): "from the keyring"}.get((service, host))

    keyring = types.ModuleType("keyring")
    keyring.get_password, keyring.errors = get_password, types.SimpleNamespace(KeyringError=KeyringError)
    keyring.__spec__ = ModuleSpec("keyring", None)
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert find_api_key("https://llm.example.org/v1") == "from the keyring"
    assert find_api_key("https://other.example.org/v1") == find_api_key("https://locked.example.org/v1") == ""
    monkeypatch.setenv("ACCEPTABILITY_KEY_LLM_EXAMPLE_ORG", "")
    assert find_api_key("https://llm.example.org/v1") == ""


def test_an_unreachable_server_is_named() -> None:
    with served() as faulty:
        gone = faulty
    with pytest.raises(ModelError, match=r"/models, request for list of models.*is the server running\?.*version='…'"):
        _ = model(gone).signature


# Servers whose log-probabilities are missing or wrong.


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ({"echoes": False}, "does not echo prompts.*only the tokens.*vLLM.*causal:"),
        ({"gives_alternatives": False}, "does not return the alternatives at each position"),
        ({"is_shifted": True}, "do not belong to their tokens"),
    ],
)
def test_a_server_that_cannot_score_is_refused(lacks: dict[str, bool], message: str) -> None:
    with served(**lacks) as faulty, pytest.raises(ModelError, match=message):
        run_model(model(faulty, start="<|s|>"), TEXTS)


def test_a_server_that_rejects_echo_is_refused(toy_server) -> None:
    toy_server.refusal = "Only no echo is supported"
    toy_server.faults.append("400")
    with pytest.raises(ModelError, match="rejects the options that are needed.*Only no echo is supported.*vLLM"):
        run_model(model(toy_server), TEXTS)


def test_a_server_without_log_probabilities_is_refused(toy_server, monkeypatch) -> None:
    monkeypatch.setattr(Faulty, "choice", lambda *_: {"index": 0, "text": "x", "logprobs": None})
    with pytest.raises(ModelError, match="gives no log-probabilities of prompts.*llama-cpp-python"):
        run_model(model(toy_server), TEXTS)


def test_a_server_with_log_probabilities_of_generated_tokens_only_is_refused(toy_server, monkeypatch) -> None:
    right = Faulty.choice

    def without(*args: object) -> dict[str, object]:
        choice = right(*args)
        found = choice["logprobs"]
        found["token_logprobs"] = [None] * (len(found["tokens"]) - 1) + found["token_logprobs"][-1:]
        return choice

    monkeypatch.setattr(Faulty, "choice", without)
    with pytest.raises(ModelError, match="echoes prompts without their log-probabilities"):
        run_model(model(toy_server), TEXTS)


# The signature.


def test_the_signature_names_the_model_and_not_the_address() -> None:
    with served() as one, served() as other:
        assert model(one).signature == model(other).signature
        assert model(one).signature.startswith("remote:toy@")
        assert "127.0.0.1" not in model(one).signature


def test_the_model_entry_changes_the_signature_but_its_start_time_does_not() -> None:
    found = []
    for created, root in ((1, "a"), (2, "a"), (2, "b")):
        with served(listed=({"id": "toy", "root": root, "created": created},)) as faulty:
            found.append(model(faulty, start=None).signature)
    assert found[0] == found[1] != found[2]


def test_a_pinned_version_and_bos_need_no_server() -> None:
    with served() as faulty:
        gone = faulty
    assert model(gone, pinned="2024-11", start=None).signature == "remote:toy@2024-11(bos=None)"


def test_the_resolved_bos_is_cached() -> None:
    with served(own_start="<|s|>") as faulty:
        signature = model(faulty, pinned="1").signature
    assert model(faulty, pinned="1").signature == signature == "remote:toy@1(bos='server')"


def test_another_model_under_the_same_name_is_refused() -> None:
    with served(own_start="<|s|>") as faulty:
        run_model(model(faulty, start="<|begin|>"), TEXTS)
    with served(own_start="<|s|><|t|>") as faulty:
        with pytest.raises(ModelError, match="does not return the log-probabilities that are stored for.*version='…'"):
            run_model(model(faulty, start="<|begin|>"), TEXTS)
        run_model(model(faulty, start="<|begin|>", pinned="2"), TEXTS)


def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    message = "serves no model 'toy'; it serves: 'a', 'b'"
    with served(listed=({"id": "a"}, {"id": "b"})) as faulty, pytest.raises(ModelError, match=message):
        _ = model(faulty).signature


@pytest.mark.parametrize(
    "spelling",
    ["remote:", "remote:localhost:8000/v1#m", "remote:http://localhost/v1", "remote:ftp://localhost/v1#m"],
)
def test_an_invalid_address_is_refused(spelling: str) -> None:
    with pytest.raises(SpecError, match="write remote:URL#MODEL"):
        load_model(spelling)


@pytest.mark.parametrize("url", ["http://me:s3cret@localhost/v1", "http://localhost/v1?key=s3cret"])
def test_a_key_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SpecError, match="ACCEPTABILITY_KEY_LOCALHOST") as error:
        load_model(f"remote:{url}#m")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://lo\tcalhost/v1", "http://evil.example\\.localhost/v1", "http://l\u00f6cal/v1", "http://[/v1"]
)
def test_an_address_that_parsers_could_read_differently_is_refused(url: str) -> None:
    with pytest.raises(SpecError, match="no address"):
        load_model(f"remote:{url}#m")


@pytest.mark.parametrize("option", ["concurrency=0", "batch=True", "tries='3'", "timeout=0", "bos=1", "version=''"])
def test_options_are_checked(option: str) -> None:
    with pytest.raises(ModelError, match=f"remote: {option.partition('=')[0]} is"):
        load_model(f"remote:http://localhost:1/v1#m({option})")


def test_a_model_opens_by_its_spec(toy_server) -> None:
    remote = load_model(f"remote:{toy_server.url}#toy(concurrency=3, batch=1, tries=2, timeout=20)")
    assert_scores_are_right(run_model(remote, TEXTS))
    assert not remote.capabilities.takes_lists


# Through the store.


def suite(count: int = 24) -> Suite:
    """Return long texts, so that few of them fill a batch of the engine."""
    texts = (f"{' '.join(['The cat that slept here'] * 16)} has seen {'one ' * index}dog." for index in range(count))
    return Suite("long", tuple(Sentence(str(index), text) for index, text in enumerate(texts)))


def count_requests(faulty: Faulty) -> dict[str, int]:
    """Return how often each text of the suite was answered."""
    return {text: count for text, count in faulty.asked.items() if not text.startswith("They moved")}


def stored(found: Remote) -> int:
    with ScoreStore() as store:
        return store.count_answers().get(found.signature, 0)


def assert_scored(found: Remote, of: Suite) -> None:
    for sentence, each in iter_model_outputs(of, found):
        assert each.logprobs == pytest.approx(truth(sentence.text, "<|s|>"), abs=1e-6)


def test_a_second_run_requests_only_the_missing_scores(toy_server) -> None:
    everything, texts = suite(), {each.text for each in suite().sentences}
    toy_server.lives_for = 18
    with pytest.raises(ModelError, match="a second run requests only what is missing"):
        score(everything, model(toy_server))
    known = stored(model(toy_server))
    assert 0 < known < len(texts)
    toy_server.lives_for = None
    toy_server.asked.clear()
    score(everything, model(toy_server))
    assert len(count_requests(toy_server)) == len(texts) - known
    assert set(count_requests(toy_server).values()) == {1}
    toy_server.asked.clear()
    assert_scored(model(toy_server), everything)
    assert not toy_server.asked


@settings(max_examples=10)
@given(faults=st.lists(st.sampled_from(["", *FAULTS]), max_size=24), lists=st.booleans(), tries=st.integers(1, 4))
def test_after_any_faults_no_score_is_wrong_or_missing(faults: list[str], lists: bool, tries: int) -> None:
    """After any faults the scores are right or there is an error; the next run asks for the rest alone."""
    everything = suite(8)
    with (
        TemporaryDirectory() as home,
        pytest.MonkeyPatch.context() as patch,
        served(own_start="<|s|>", takes_lists=lists, faults=faults) as faulty,
    ):
        patch.setenv("ACCEPTABILITY_HOME", str(Path(home)))
        with suppress(ModelError) if any(faults) else nullcontext():
            assert_scored(model(faulty, tries=tries, start="server"), everything)
        faulty.faults.clear()
        faulty.asked.clear()
        missing = len(everything.sentences) - stored(model(faulty, start="server"))
        assert_scored(model(faulty, start="server"), everything)
        assert sum(count_requests(faulty).values()) == missing
