from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from acceptability import Contrast, Sentence, Suite, load_model
from acceptability.api.scoring import compare_precisions
from acceptability.errors import SpecError
from acceptability.models import set_spec_dtype
from acceptability.text.words import compute_word_logprobs
from acceptability.types import Query, TokenScores


def test_a_words_logprob_is_the_sum_over_its_tokens() -> None:
    text = "The cat's  asleep"
    spans = ((0, 3), (3, 7), (7, 9), (9, 13), (13, 17), (17, 17))
    logprobs = np.array([-1, -2, -3, -4, -5, -6], np.float32)
    words = compute_word_logprobs(TokenScores(text, ("The", "Ġcat", "'s", "ĠĠas", "leep", "</s>"), spans, logprobs))
    assert [(word.text, word.logprob) for word in words] == [("The", -1.0), ("cat's", -5.0), ("asleep", -9.0)]
    assert [text[slice(*word.span)] for word in words] == [word.text for word in words]


def test_a_word_without_a_scored_token_has_no_logprob() -> None:
    token_scores = TokenScores("The cats", ("Ġcats",), ((3, 8),), np.array([-2.0], np.float32))
    assert [word.logprob for word in compute_word_logprobs(token_scores)] == [None, -2.0]


def test_words_of_a_real_tokenizer_sum_to_the_sentence(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}")
    (token_scores,) = model.run(model.encode([Query("The unbelievably large dog sleeps.")]))
    words = compute_word_logprobs(token_scores)
    assert [word.text for word in words] == ["The", "unbelievably", "large", "dog", "sleeps."]
    assert sum(word.logprob for word in words) == pytest.approx(float(token_scores.logprobs.sum()), abs=1e-4)


def test_a_precision_is_written_into_the_model(causal_dir: Path) -> None:
    spelled = f"causal:{causal_dir}(bos=None)"
    assert set_spec_dtype(spelled, "float16").endswith("(bos=None, dtype='float16')")
    assert "bfloat16" in load_model(set_spec_dtype(spelled, "bfloat16")).signature
    assert set_spec_dtype(set_spec_dtype(spelled, "float16"), "float16") == set_spec_dtype(spelled, "float16")
    with pytest.raises(SpecError, match="remove one of them"):
        set_spec_dtype(set_spec_dtype(spelled, "float16"), "bfloat16")
    with pytest.raises(SpecError, match="no precision to choose"):
        set_spec_dtype("uniform", "bfloat16")


def test_differences_between_precisions_are_reported(causal_dir: Path) -> None:
    sentences = (
        Sentence("a", "The cats sleep."),
        Sentence("b", "The cats sleeps."),
        Sentence("c", "Who did he think?"),
    )
    suite = Suite("three", sentences, (Contrast("a", "b"),))
    half, third = compare_precisions(suite, f"causal:{causal_dir}")
    assert (half.dtype, third.dtype, half.against) == ("bfloat16", "float16", "float32")
    assert 0 < third.largest < 5
    assert 0 < half.largest < 5
    assert half.mean <= half.largest
    assert half.sentence in {"a", "b", "c"}
    assert half.changed in (0, 1)
    assert half.contrasts == 1
    (none,) = compare_precisions(suite, f"causal:{causal_dir}", dtypes=["float32"])
    assert (none.largest, none.changed) == (0.0, 0)
