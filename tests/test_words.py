from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from acceptability import Contrast, Sentence, Suite, load_model
from acceptability.errors import SpellingError
from acceptability.models import in_precision
from acceptability.precision import precision_differences
from acceptability.types import Query, TokenScores
from acceptability.words import words


def test_words_add_up_their_tokens_wherever_the_space_stands() -> None:
    text = "The cat's  asleep"
    spans = ((0, 3), (3, 7), (7, 9), (9, 13), (13, 17), (17, 17))
    logprobs = np.array([-1, -2, -3, -4, -5, -6], np.float32)
    found = words(TokenScores(text, ("The", "Ġcat", "'s", "ĠĠas", "leep", "</s>"), spans, logprobs))
    assert [(each.text, each.logprob) for each in found] == [("The", -1.0), ("cat's", -5.0), ("asleep", -9.0)]
    assert [text[slice(*each.span)] for each in found] == [each.text for each in found]


def test_a_word_without_a_scored_token_has_no_logprob() -> None:
    said = TokenScores("The cats", ("Ġcats",), ((3, 8),), np.array([-2.0], np.float32))
    assert [each.logprob for each in words(said)] == [None, -2.0]


def test_words_of_a_real_tokenizer_sum_to_the_sentence(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}")
    (said,) = model.run(model.encode([Query("The unbelievably large dog sleeps.")]))
    found = words(said)
    assert [each.text for each in found] == ["The", "unbelievably", "large", "dog", "sleeps."]
    assert sum(each.logprob for each in found) == pytest.approx(float(said.logprobs.sum()), abs=1e-4)


def test_a_precision_is_written_into_the_model(causal_dir: Path) -> None:
    spelled = f"causal:{causal_dir}(bos=None)"
    assert in_precision(spelled, "float16").endswith("(bos=None, dtype='float16')")
    assert "bfloat16" in load_model(in_precision(spelled, "bfloat16")).signature
    assert in_precision(in_precision(spelled, "float16"), "float16") == in_precision(spelled, "float16")
    with pytest.raises(SpellingError, match="say it once"):
        in_precision(in_precision(spelled, "float16"), "bfloat16")
    with pytest.raises(SpellingError, match="no precision to choose"):
        in_precision("uniform", "bfloat16")


def test_differences_between_precisions_are_told(causal_dir: Path) -> None:
    sentences = (
        Sentence("a", "The cats sleep."),
        Sentence("b", "The cats sleeps."),
        Sentence("c", "Who did he think?"),
    )
    suite = Suite("three", sentences, (Contrast("a", "b"),))
    half, third = precision_differences(suite, f"causal:{causal_dir}")
    assert (half.dtype, third.dtype, half.against) == ("bfloat16", "float16", "float32")
    assert 0 < third.largest < 5
    assert 0 < half.largest < 5
    assert half.mean <= half.largest
    assert half.sentence in {"a", "b", "c"}
    assert half.changed in (0, 1)
    assert half.contrasts == 1
    (none,) = precision_differences(suite, f"causal:{causal_dir}", dtypes=["float32"])
    assert (none.largest, none.changed) == (0.0, 0)
