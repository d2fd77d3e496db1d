"""transformers' bar is not drawn for models that we load, and the user's setting of it is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub.utils import are_progress_bars_disabled
from transformers.utils import logging

from acceptability.models.hf.loading import hide_progress_bars


@pytest.fixture(autouse=True)
def setting_of_the_tests() -> Iterator[None]:
    enabled = logging.is_progress_bar_enabled()
    yield
    (logging.enable_progress_bar if enabled else logging.disable_progress_bar)()


def test_our_models_draw_no_bar_and_the_users_own_do(causal_dir: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from transformers import AutoModelForCausalLM
from acceptability import judge
judge("the girl sings", "the girl sing", model="causal:{causal_dir}")
print("their own", file=sys.stderr)
AutoModelForCausalLM.from_pretrained({str(causal_dir)!r})
"""
    # In a process of its own: the environment of the tests switches all bars off.
    variables = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    variables["ACCEPTABILITY_HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    ours, _, theirs = done.stderr.partition("their own")
    assert "Loading weights" not in ours
    assert "Loading" in theirs


@pytest.mark.parametrize("enabled", [True, False])
def test_two_models_at_a_time_leave_the_setting_as_it_was(enabled: bool) -> None:
    (logging.enable_progress_bar if enabled else logging.disable_progress_bar)()
    first, second = hide_progress_bars(), hide_progress_bars()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not logging.is_progress_bar_enabled()
    second.__exit__(None, None, None)
    assert logging.is_progress_bar_enabled() == enabled


def load_damaged_model() -> None:
    with hide_progress_bars():
        assert not logging.is_progress_bar_enabled()
        assert not are_progress_bars_disabled()
        raise ValueError("damaged")


def test_a_failure_brings_the_bars_back_and_those_of_the_hub_stay() -> None:
    logging.enable_progress_bar()
    with pytest.raises(ValueError, match="damaged"):
        load_damaged_model()
    assert logging.is_progress_bar_enabled()
