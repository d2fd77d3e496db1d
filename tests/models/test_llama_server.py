"""A real server: llama-cpp-python with SmolLM2, beside the same file read by transformers.

The server multiplies 4-bit weights with 8-bit activations, transformers the same weights in
float32, so the two agree only nearly. Measured: the 164 tokens of 20 sentences lay 0.098 nats
apart on average, 0.74 at most, with a correlation of 0.9993 (of sentences 0.9987), and all
10 preferences were the same; with two start tokens 98 tokens, 0.133, 0.75 and 0.9995.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest
import requests

from acceptability import load_model, load_suite
from acceptability.errors import ModelError
from acceptability.models import list_named_models
from acceptability.types import Query, TokenScores

PYTHON = os.environ.get("ACCEPTABILITY_LLAMA_SERVER") or (find_spec("llama_cpp") and sys.executable)
GGUF = list_named_models()["smollm2-135m"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GGUF.is_installed(), reason="smollm2-135m is not installed"),
    pytest.mark.skipif(
        not PYTHON, reason="no llama-cpp-python: name a Python that has its server in ACCEPTABILITY_LLAMA_SERVER"
    ),
]

START = "<|endoftext|>"
STARTED = ["--kv_overrides", "tokenizer.ggml.bos_token_id=int:0", "tokenizer.ggml.add_bos_token=bool:true"]


@contextmanager
def llama_server(*options: str) -> Iterator[str]:
    """Run the server on a free port, and give its address."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    gguf_path = GGUF.make_spec().removeprefix("causal:").partition("(")[0]
    command = [PYTHON, "-m", "llama_cpp.server", "--model", gguf_path, "--model_alias", "smollm2", "--port", str(port)]
    command += ["--host", "127.0.0.1", "--n_ctx", "512", "--n_threads", "1", "--logits_all", "true", *options]
    environment = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}/v1"
            _wait_for(url, server)
            yield url
        finally:
            server.terminate()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert server.poll() is None, "the server ended"
        try:
            requests.get(f"{url}/models", timeout=60)
        except requests.ConnectionError:
            time.sleep(0.25)
        else:
            return
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="module")
def started() -> Iterator[str]:
    """A server that puts <|endoftext|> before every text, and does not show it."""
    with llama_server(*STARTED) as url:
        yield url


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """A server that puts nothing before a text."""
    with llama_server() as url:
        yield url


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    suite = load_suite("starter")
    texts = {each.id: each.text for each in suite.sentences}
    return [(texts[each.better], texts[each.worse]) for each in suite.contrasts[:: len(suite.contrasts) // 10][:10]]


def run_model(model: str, queries: list[Query]) -> list[TokenScores]:
    opened = load_model(model)
    return opened.run(opened.encode(queries))


def assert_near(found: list[TokenScores], expected: list[np.ndarray]) -> None:
    """The tolerance is what was measured, with room for another machine's kernels."""
    assert [len(each.tokens) for each in found] == [len(each) for each in expected]
    here, there = np.concatenate([each.logprobs for each in found]), np.concatenate(expected)
    assert np.abs(here - there).mean() < 0.25
    assert np.corrcoef(here, there)[0, 1] > 0.995


def assert_same_preferences(found: list[TokenScores], expected: list[np.ndarray]) -> None:
    gaps = [
        [float(better.sum() - worse.sum()) for better, worse in zip(rows[::2], rows[1::2], strict=True)]
        for rows in ([each.logprobs for each in found], expected)
    ]
    assert [gap > 0 for gap in gaps[0]] == [gap > 0 for gap in gaps[1]]


def test_the_server_scores_nearly_like_transformers(started: str, pairs: list[tuple[str, str]]) -> None:
    queries = [Query(text) for pair in pairs for text in pair]
    remote = load_model(f"remote:{started}#smollm2")
    assert remote.signature.endswith("(bos=None)")
    found = remote.run(remote.encode(queries))
    local = run_model(GGUF.make_spec(), queries)
    expected = [each.logprobs[1:] for each in local]
    assert [each.offsets[-1] for each in found] == [each.offsets[-1] for each in local]
    assert_near(found, expected)
    assert_same_preferences(found, expected)


def test_a_second_start_token_gets_the_first_word_scored(plain: str, pairs: list[tuple[str, str]]) -> None:
    texts = [text for pair in pairs[:5] for text in pair]
    found = run_model(f"remote:{plain}#smollm2(bos='<|im_start|>{START}')", [Query(text) for text in texts])
    after_both = GGUF.make_spec().replace(START, "<|im_start|>")
    framed = [Query(START + text, "", (len(START), len(START + text))) for text in texts]
    assert [each.offsets[0][0] for each in found] == [0] * len(texts)
    expected = [each.logprobs for each in run_model(after_both, framed)]
    assert_near(found, expected)
    assert_same_preferences(found, expected)


@pytest.mark.parametrize("options", ["", f"(bos='{START}')"])
def test_shifted_log_probabilities_are_refused(plain: str, options: str) -> None:
    with pytest.raises(ModelError, match="do not belong to their tokens"):
        run_model(f"remote:{plain}#smollm2{options}", [Query("The cats sleep.")])


def test_characters_split_into_tokens_are_aligned(started: str) -> None:
    (found,) = run_model(f"remote:{started}#smollm2", [Query("She said “naïve” 你好 😀")])
    assert [found.text[slice(*span)] for span in found.offsets[-6:]] == ["你", "你", "好", "好", " ", "😀"]
