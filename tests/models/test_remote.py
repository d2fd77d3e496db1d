"""Models behind a server: right scores or a clear error, whatever the server and the network do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability import load_model, score
from acceptability.errors import ModelError, SpellingError
from acceptability.models.completions import Patience, Server
from acceptability.models.remote import Remote
from acceptability.scoring import tokens as said_of
from acceptability.store.said import Store
from acceptability.types import Query, Sentence, Suite, TokenScores
from faulty_server import FAULTS, TOKEN, Faulty, served, truth

TEXTS = ["The cats sleep.", "Who did the dog chase?", "He is sleeping, she isn't.", "I think that it rains."]


def model(faulty: Faulty, *, waited: list[float] | None = None, **options: object) -> Remote:
    """Return the model of a server, which waits for nothing in earnest."""
    sleep = (waited if waited is not None else []).append
    patience = Patience(
        timeout=options.pop("timeout", 30.0), tries=options.pop("tries", 4), sleep=sleep, chance=lambda: 1.0
    )
    server = Server(faulty.url, patience, connections=options.pop("connections", 2))
    return Remote(server, "toy", **{"batch": 2} | options)


def said(model: Remote, queries: Sequence[Query | str]) -> list[TokenScores]:
    return model.run(model.encode([Query(each) if isinstance(each, str) else each for each in queries]))


def assert_true(found: Sequence[TokenScores], before: str = "<|s|>", texts: Sequence[str] = TEXTS) -> None:
    assert [each.text for each in found] == list(texts)
    for each in found:
        skipped = len(TOKEN.findall(each.text)) - len(each.tokens)
        assert skipped == (0 if before else 1)
        assert each.logprobs == pytest.approx(truth(each.text, before)[skipped:], abs=1e-6)
        assert each.logprobs.dtype == np.float32
        assert tuple(each.text[slice(*span)] for span in each.offsets) == each.tokens


# What is asked, and what of the answer counts.


def test_every_token_gets_its_log_probability(toy_server) -> None:
    found = model(toy_server)
    assert_true(said(found, TEXTS))
    assert found.signature.endswith("(bos='server')")
    body = toy_server.bodies[-1]
    assert body["echo"] is True
    assert body["temperature"] == 0
    assert body["model"] == "toy"
    assert body["max_tokens"] == 1


def test_a_server_without_a_start_token_leaves_the_first_token_unscored() -> None:
    with served() as faulty:
        found = model(faulty)
        assert_true(said(found, TEXTS), before="")
        assert found.signature.endswith("(bos=None)")
        with pytest.raises(ModelError, match="scores no token of 'Cats'.*bos='TOKEN'"):
            said(found, ["Cats"])


def test_a_start_of_ones_own_is_sent_and_not_scored() -> None:
    with served() as faulty:
        found = model(faulty, start="<|begin|>")
        assert_true(said(found, TEXTS), before="<|begin|>")
        assert found.signature.endswith("(bos='<|begin|>')")


def test_the_first_token_can_be_left_unscored_everywhere(toy_server) -> None:
    (found,) = said(model(toy_server, start=None), TEXTS[:1])
    assert found.tokens[0] == " cats"
    assert found.logprobs == pytest.approx(truth(TEXTS[0], "<|s|>")[1:], abs=1e-6)


def test_a_start_that_the_server_does_not_show_is_refused_where_it_should_be_scored() -> None:
    with served(own_start="<|s|>", shows_start=False) as faulty:
        assert model(faulty).signature.endswith("(bos=None)")
        with pytest.raises(ModelError, match="shows no start token of its own"):
            said(model(faulty, start="server"), TEXTS)
        assert_true(said(model(faulty, start="<|begin|>"), TEXTS), before="<|s|><|begin|>")


def test_only_the_text_after_its_context_is_scored(toy_server) -> None:
    (found,) = said(model(toy_server), [Query("It sleeps.", "Here is the cat.")])
    assert found.tokens == (" It", " sleeps", ".")
    assert found.offsets == ((0, 2), (2, 9), (9, 10))
    assert found.logprobs == pytest.approx(truth("Here is the cat. It sleeps.", "<|s|>")[-3:], abs=1e-6)


def test_only_the_target_is_scored(toy_server) -> None:
    (found,) = said(model(toy_server), [Query("It sleeps now.", "Hm.", (3, 9))])
    assert (found.tokens, found.offsets) == ((" sleeps",), ((2, 9),))


def test_one_text_goes_into_a_request_where_the_server_takes_no_lists() -> None:
    with served(own_start="<|s|>", takes_lists=False) as faulty:
        found = model(faulty)
        assert_true(said(found, TEXTS))
        assert not found.habits.takes_lists
        assert all(isinstance(body["prompt"], str) for body in faulty.bodies[-4:])


def test_a_server_that_adds_nothing_and_gives_no_offsets_is_read_too() -> None:
    with served(own_start="<|s|>", gives_offsets=False, adds_token=False) as faulty:
        assert_true(said(model(faulty), TEXTS))


def test_all_connections_share_a_batch(toy_server) -> None:
    found = model(toy_server, connections=4, batch=16)
    assert found.budget == 4 * 16 * 16
    said(found, TEXTS)
    assert [body["prompt"] for body in toy_server.bodies[-4:] if isinstance(body["prompt"], list)] == []


# What goes wrong.


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_costs_a_second_try_and_nothing_else(toy_server, fault: str) -> None:
    waited: list[float] = []
    found = model(toy_server, connections=1, batch=4, waited=waited)
    _ = found.habits
    toy_server.faults.append(fault)
    assert_true(said(found, TEXTS))
    assert waited == {"shuffled": [], "429": [7.0]}.get(fault, [0.5])


def test_a_slow_answer_is_asked_for_again(toy_server) -> None:
    found = model(toy_server, connections=1, batch=4, timeout=0.5)
    _ = found.habits
    toy_server.faults.append("slow")
    assert_true(said(found, TEXTS))


def test_a_lasting_fault_ends_in_an_error_that_says_what_to_do(toy_server) -> None:
    waited: list[float] = []
    found = model(toy_server, connections=1, batch=4, waited=waited)
    _ = found.habits
    toy_server.faults.extend(["nan"] * 4)
    with pytest.raises(ModelError) as error:
        said(found, TEXTS)
    message = str(error.value)
    assert f"{toy_server.url}/completions, asked about 'The cats sleep.' and 3 more" in message
    assert "the log-probability of '.' is nan. Given up after 4 tries" in message
    assert message.endswith("running again asks only for what is missing.")
    assert waited == [0.5, 1.0, 2.0]


def test_pauses_vary_but_never_beyond_their_length() -> None:
    waited: list[float] = []
    patience = Patience(pause=1.0, sleep=waited.append, chance=random.Random(1).random)
    for tried in range(1, 12):
        patience.wait(tried, None)
    longest = [min(2.0**power, 60.0) for power in range(11)]
    assert all(most / 2 <= each <= most for each, most in zip(waited, longest, strict=True))
    assert len({each / most for each, most in zip(waited, longest, strict=True)}) == 11


@pytest.mark.parametrize("status", ["400", "401", "404", "501", "302"])
def test_a_refusal_is_final_and_is_told_without_the_key(toy_server, monkeypatch, status: str) -> None:
    monkeypatch.setenv("ACCEPTABILITY_API_KEY", "s3cret-key")
    waited: list[float] = []
    found = model(toy_server, connections=1, batch=4, waited=waited)
    _ = found.habits
    toy_server.faults.extend([status] * 5)
    with pytest.raises(
        ModelError, match=f"asked about 'The cats sleep.'.*: it answered {status}: refused: Bearer …"
    ) as error:
        said(found, TEXTS)
    assert toy_server.headers[-1]["Authorization"] == "Bearer s3cret-key"
    assert "s3cret-key" not in str(error.value) + found.signature + repr(found)
    assert waited == []


def test_a_refused_list_is_asked_for_one_by_one(toy_server) -> None:
    """So that a text that is too long is named."""
    found = model(toy_server, connections=1, batch=4)
    _ = found.habits
    toy_server.faults.append("400")
    assert_true(said(found, TEXTS))
    toy_server.faults.extend(["400", "", "400"])
    with pytest.raises(ModelError, match="asked about 'Who did the dog chase\\?': it answered 400"):
        said(found, TEXTS)


def test_the_key_may_be_openais_and_an_empty_one_means_none(toy_server, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    _ = model(toy_server).version
    assert toy_server.headers[-1]["Authorization"] == "Bearer other"
    monkeypatch.setenv("ACCEPTABILITY_API_KEY", "")
    _ = model(toy_server).version
    assert "Authorization" not in toy_server.headers[-1]


def test_a_server_that_is_not_there_is_named() -> None:
    with served() as faulty:
        gone = faulty
    with pytest.raises(ModelError, match=r"/models, asked about which models.*is the server running\?.*version='…'"):
        _ = model(gone).signature


# Servers that cannot help, or cannot be believed.


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ({"echoes": False}, "does not echo prompts.*only the tokens.*vLLM.*causal:"),
        ({"gives_alternatives": False}, "does not say what else could stand in a place"),
        ({"is_shifted": True}, "do not belong to the tokens beside which they stand"),
    ],
)
def test_a_server_that_cannot_score_is_told_apart(lacks: dict[str, bool], message: str) -> None:
    with served(**lacks) as faulty, pytest.raises(ModelError, match=message):
        said(model(faulty, start="<|s|>"), TEXTS)


def test_a_server_that_refuses_to_echo_is_told_apart(toy_server) -> None:
    toy_server.refusal = "Only no echo is supported"
    toy_server.faults.append("400")
    with pytest.raises(ModelError, match="refuses what is needed.*Only no echo is supported.*vLLM"):
        said(model(toy_server), TEXTS)


def test_a_server_without_log_probabilities_is_told_apart(toy_server, monkeypatch) -> None:
    monkeypatch.setattr(Faulty, "choice", lambda *_: {"index": 0, "text": "x", "logprobs": None})
    with pytest.raises(ModelError, match="gives no log-probabilities of prompts.*llama-cpp-python"):
        said(model(toy_server), TEXTS)


def test_a_server_with_log_probabilities_of_its_own_tokens_alone_is_told_apart(toy_server, monkeypatch) -> None:
    right = Faulty.choice

    def without(*args: object) -> dict[str, object]:
        choice = right(*args)
        found = choice["logprobs"]
        found["token_logprobs"] = [None] * (len(found["tokens"]) - 1) + found["token_logprobs"][-1:]
        return choice

    monkeypatch.setattr(Faulty, "choice", without)
    with pytest.raises(ModelError, match="echoes prompts without their log-probabilities"):
        said(model(toy_server), TEXTS)


# The signature.


def test_the_signature_names_the_model_and_not_the_address() -> None:
    with served() as one, served() as other:
        assert model(one).signature == model(other).signature
        assert model(one).signature.startswith("remote:toy@")
        assert "127.0.0.1" not in model(one).signature


def test_what_the_server_says_changes_the_signature_but_not_when_it_was_started() -> None:
    found = []
    for created, root in ((1, "a"), (2, "a"), (2, "b")):
        with served(listed=({"id": "toy", "root": root, "created": created},)) as faulty:
            found.append(model(faulty, start=None).signature)
    assert found[0] == found[1] != found[2]


def test_a_pinned_version_and_a_given_start_need_no_server() -> None:
    with served() as faulty:
        gone = faulty
    assert model(gone, pinned="2024-11", start=None).signature == "remote:toy@2024-11(bos=None)"


def test_what_auto_means_is_remembered() -> None:
    with served(own_start="<|s|>") as faulty:
        signature = model(faulty, pinned="1").signature
    assert model(faulty, pinned="1").signature == signature == "remote:toy@1(bos='server')"


def test_another_model_under_the_same_name_is_refused() -> None:
    with served(own_start="<|s|>") as faulty:
        said(model(faulty, start="<|begin|>"), TEXTS)
    with served(own_start="<|s|><|t|>") as faulty:
        with pytest.raises(ModelError, match="does not answer as the server did whose scores are stored.*version='…'"):
            said(model(faulty, start="<|begin|>"), TEXTS)
        said(model(faulty, start="<|begin|>", pinned="2"), TEXTS)


def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    message = "serves no model 'toy'; it serves: 'a', 'b'"
    with served(listed=({"id": "a"}, {"id": "b"})) as faulty, pytest.raises(ModelError, match=message):
        _ = model(faulty).signature


@pytest.mark.parametrize(
    "spelling",
    ["remote:", "remote:localhost:8000/v1#m", "remote:http://localhost/v1", "remote:ftp://localhost/v1#m"],
)
def test_an_address_that_does_not_read_is_refused(spelling: str) -> None:
    with pytest.raises(SpellingError, match="write remote:URL#MODEL"):
        load_model(spelling)


@pytest.mark.parametrize("url", ["http://me:s3cret@localhost/v1", "http://localhost/v1?key=s3cret"])
def test_a_key_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SpellingError, match="ACCEPTABILITY_API_KEY") as error:
        load_model(f"remote:{url}#m")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("option", ["concurrency=0", "batch=True", "tries='3'", "timeout=0", "bos=1", "version=''"])
def test_options_are_checked(option: str) -> None:
    with pytest.raises(ModelError, match=f"remote: {option.partition('=')[0]} is"):
        load_model(f"remote:http://localhost:1/v1#m({option})")


def test_a_model_opens_by_its_spelling(toy_server) -> None:
    found = load_model(f"remote:{toy_server.url}#toy(concurrency=3, batch=1, tries=2, timeout=20)")
    assert_true(said(found, TEXTS))
    assert not found.habits.takes_lists


# Through the store.


def suite(count: int = 24) -> Suite:
    """Return long texts, so that few of them fill a batch of the engine."""
    texts = (f"{' '.join(['The cat that slept here'] * 16)} has seen {'one ' * place}dog." for place in range(count))
    return Suite("long", tuple(Sentence(str(place), text) for place, text in enumerate(texts)))


def asked(faulty: Faulty) -> dict[str, int]:
    """Return how often each text of the suite was answered."""
    return {text: count for text, count in faulty.asked.items() if not text.startswith("They moved")}


def stored(found: Remote) -> int:
    with Store() as store:
        return store.counts().get(found.signature, 0)


def assert_scored(found: Remote, of: Suite) -> None:
    for sentence, each in said_of(of, found):
        assert each.logprobs == pytest.approx(truth(sentence.text, "<|s|>"), abs=1e-6)


def test_a_second_run_asks_only_for_what_is_missing(toy_server) -> None:
    everything, texts = suite(), {each.text for each in suite().sentences}
    toy_server.lives_for = 18
    with pytest.raises(ModelError, match="running again asks only for what is missing"):
        score(everything, model(toy_server))
    known = stored(model(toy_server))
    assert 0 < known < len(texts)
    toy_server.lives_for = None
    toy_server.asked.clear()
    score(everything, model(toy_server))
    assert len(asked(toy_server)) == len(texts) - known
    assert set(asked(toy_server).values()) == {1}
    toy_server.asked.clear()
    assert_scored(model(toy_server), everything)
    assert not toy_server.asked


@settings(max_examples=25, deadline=None)
@given(faults=st.lists(st.sampled_from(["", *FAULTS]), max_size=24), lists=st.booleans(), tries=st.integers(1, 4))
def test_whatever_goes_wrong_no_score_is_wrong_or_missing(faults: list[str], lists: bool, tries: int) -> None:
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
        assert sum(asked(faulty).values()) == missing
