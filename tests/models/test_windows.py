"""Texts longer than a model's window: every token is scored once, as in its window by a plain loop."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from acceptability import Query, load_model
from acceptability.errors import ModelError, QueryError
from acceptability.models.hf.masked import Masked, MaskedEncoding
from acceptability.models.windows import list_window_starts, warn_of_long_text

torch = pytest.importorskip("torch")

LONG = Query(" ".join(f"The dog number {number} chased the cats again." for number in range(30)))
SHORT = Query("The cats sleep.")


def plain_net(model: Any, kind: str) -> Any:
    import transformers

    return getattr(transformers, kind).from_pretrained(model.splitter.files.folder, dtype=torch.float32).eval()


def test_windows_cover_a_text_and_end_with_it() -> None:
    assert list_window_starts(100, 40, 25) == [0, 25, 50, 60]
    assert list_window_starts(40, 40, 25) == [0]


def test_a_long_text_is_scored_in_windows_as_by_a_plain_loop(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}(stride=20)")
    (encoded,) = model.encode([LONG])
    assert len(encoded.ids) > 2 * model.window
    (found,) = model.run([encoded])
    net = plain_net(model, "AutoModelForCausalLM")
    text_ids, capacity = list(encoded.ids[1:]), model.window - 1
    expected, done, start = [], 0, 0
    while done < len(text_ids):
        ids = [encoded.ids[0], *text_ids[start : start + capacity]]
        with torch.inference_mode():
            table = net(torch.tensor([ids])).logits[0].log_softmax(1)
        end = start + capacity
        stop = len(text_ids) if end >= len(text_ids) else end - 1
        expected += [float(table[at - start, text_ids[at]]) for at in range(done, stop)]
        done, start = stop, min(start + 20, len(text_ids) - capacity)
    np.testing.assert_allclose(found.logprobs, expected, atol=1e-4)
    assert [LONG.text[a:b] for a, b in found.offsets][:2] == ["The", " dog"]
    assert found.offsets[-1][1] == len(LONG.text)


@pytest.mark.parametrize("options", ["", ", spaces='trailing'", ", eos=True", ", bos=None"])
def test_a_short_text_has_the_same_scores_with_a_stride(causal_dir: Path, options: str) -> None:
    plain = load_model(f"causal:{causal_dir}({options.removeprefix(', ')})")
    windowed = load_model(f"causal:{causal_dir}(stride=20{options})")
    (expected,), (found,) = (model.run(model.encode([SHORT])) for model in (plain, windowed))
    np.testing.assert_array_equal(found.logprobs, expected.logprobs)
    assert found.tokens == expected.tokens


@pytest.mark.parametrize("options", ["", ", spaces='trailing'", ", eos=True", ", bos=None"])
def test_scores_and_predictions_have_the_same_windows(causal_dir: Path, options: str) -> None:
    model = load_model(f"causal:{causal_dir}(stride=20{options})")
    predictor = model.as_predictor(3)
    (scored,), (found,) = (each.run(each.encode([LONG])) for each in (model, predictor))
    assert scored.tokens == found.tokens
    np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-4)
    # Every character of the text belongs to one token.
    assert sum(end - start for start, end in found.offsets) + 3 * ("None" in options) == len(LONG.text)


def test_a_target_and_a_context_may_lie_anywhere(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}(stride=20)")
    start = LONG.text.index("number 25")
    (part,) = model.run(model.encode([Query(LONG.text, target=(start, start + 9))]))
    (whole,) = model.run(model.encode([LONG]))
    chosen = [at for at, (a, b) in enumerate(whole.offsets) if a < start + 9 and b > start]
    np.testing.assert_allclose(part.logprobs, whole.logprobs[chosen], atol=1e-5)
    (after,) = model.run(model.encode([Query("The cats sleep.", LONG.text)]))
    assert after.offsets[0][0] == 0
    assert after.offsets[-1] == (14, 15)


def test_masked_windows_score_each_token_once(masked_dir: Path) -> None:
    model = load_model(f"masked:{masked_dir}(stride=20)")
    (encoded,) = model.encode([LONG])
    assert len(encoded.windows) > 2
    (found,) = model.run([encoded])
    assert len(found.tokens) == sum(len(window.scored) for window in encoded.windows) == len(encoded.ids) - 2
    assert list(found.offsets) == sorted(found.offsets)
    window = encoded.windows[1]
    net = plain_net(model, "AutoModelForMaskedLM")
    ids = list(window.ids)
    position = window.scored[0]
    ids[position] = model.splitter.files.tokenizer.mask_token_id
    with torch.inference_mode():
        logprobs = net(torch.tensor([ids])).logits[0, position].log_softmax(0)
    assert found.logprobs[len(encoded.windows[0].scored)] == pytest.approx(
        float(logprobs[window.ids[position]]), abs=1e-4
    )
    start = LONG.text.index("number 25")
    (part,) = model.run(model.encode([Query(LONG.text, target=(start, start + 6))]))
    assert LONG.text[part.offsets[0][0] : part.offsets[-1][1]] == "number"
    with pytest.raises(QueryError, match="more tokens than the model reads at a time"):
        model.encode([Query(LONG.text, target=(0, len(LONG.text)))])


def test_the_window_is_as_long_as_the_rows_of_training(causal_dir: Path, tmp_path: Path, caplog) -> None:
    folder = tmp_path / "trained"
    shutil.copytree(causal_dir, folder)
    (folder / "recipe.json").write_text(json.dumps({"kind": "gpt", "recipe": {"row": 32}}), encoding="utf-8")
    model = load_model(f"causal:{folder}(stride=8)")
    assert model.signature.endswith("window=32, stride=8)")
    assert max(len(window.ids) for window in model.encode([LONG])[0].windows) == 32
    warn_of_long_text.cache_clear()
    plain = load_model(f"causal:{folder}")
    with caplog.at_level(logging.WARNING):
        plain.encode([SHORT])
        assert not caplog.records
        plain.encode([Query(LONG.text[:120])])
    assert "was trained on texts of up to 32 tokens" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("stride=0", "stride is 0; expected a number of tokens"),
        ("stride=True", "stride is True"),
        ("window=32", "window=32 needs a stride"),
        ("stride=8, window=99", "reads 64 tokens at a time"),
        ("stride=62", "leaves no context"),
    ],
)
def test_windows_that_cannot_be_are_refused(causal_dir: Path, options: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        encode_long(f"causal:{causal_dir}({options})")


def encode_long(spec: str) -> None:
    load_model(spec).encode([LONG])


def test_a_window_that_begins_with_a_marked_unknown_word_is_kept() -> None:
    ids = [101, 100, *range(1, 10), 102]
    offsets = [(0, 0), *((2 * at, 2 * at + 1) for at in range(10)), (0, 0)]
    # The unknown word, 100, is marked as special.
    marks = [1, 1, *[0] * 9, 1]
    whole = SimpleNamespace(ids=ids, offsets=offsets, special_tokens_mask=marks)
    scored = list(range(1, 11))
    encoding = MaskedEncoding(Query("x " * 9 + "x"), ids, scored, scored, False, whole)
    model = Masked(SimpleNamespace(name="m"), "pll", "float32", "cpu")  # type: ignore[arg-type]
    windows = model.split_windows(encoding, 8, 3)
    assert len(windows) > 1
    assert sum(len(window.scored) for window in windows) == len(scored)
