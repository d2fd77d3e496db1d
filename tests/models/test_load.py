from __future__ import annotations

import subprocess
import sys

import pytest

from acceptability import evaluate, load_model
from acceptability.errors import MissingExtra, ModelError, QueryError, SpecError, UnknownName
from acceptability.models import default_model, expand_named_model, list_named_models, set_spec_dtype
from acceptability.types import Query


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'causal'"):
        load_model("casual:gpt2")
    with pytest.raises(UnknownName, match="Did you mean 'sphinx-trigram'"):
        load_model("sphinx-trigam")


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(SpecError, match="vocab"):
        load_model("uniform(vocab=3)")
    with pytest.raises(ModelError, match="vocabulary is 0"):
        load_model("uniform(vocabulary=0)")
    with pytest.raises(ModelError, match="has no files"):
        load_model("uniform:x")


def test_a_named_model_takes_the_options_of_its_kind() -> None:
    assert load_model("trigram(unknown='omit', eos=True)").signature == (
        load_model("trigram").signature.replace("eos=False", "eos=True").replace("'spelling'", "'omit'")
    )
    with pytest.raises(SpecError, match="unknwn"):
        load_model("trigram(unknwn='omit')")


def test_an_option_replaces_the_one_that_a_name_includes() -> None:
    assert expand_named_model("mini-masked").endswith("mini-masked(variant='word_l2r')")
    assert expand_named_model("mini-masked(variant='pll', dtype='float16')").endswith(
        "mini-masked(variant='pll', dtype='float16')"
    )
    assert set_spec_dtype("mini-masked(variant='pll')", "float16").endswith("(variant='pll', dtype='float16')")


def test_a_missing_named_model_says_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr("acceptability.models.is_importable", lambda name: False)
    with pytest.raises(MissingExtra, match="pip install --no-deps pocketsphinx"):
        load_model("sphinx-trigram")
    assert default_model() == "trigram"
    assert [name for name, each in list_named_models().items() if each.is_installed()] == ["trigram", "uniform"]


def test_uniform_knows_only_length() -> None:
    model = load_model("uniform(vocabulary=10)")
    (found,) = model.run(model.encode([Query("a b c")]))
    assert found.logprobs.tolist() == pytest.approx([-2.302585] * 3)
    with pytest.raises(QueryError, match="no word"):
        model.encode([Query("a", target=(1, 1))])


def test_a_second_run_does_not_even_import_torch(causal_dir, own_home, tmp_path) -> None:
    """What is stored needs no model: not its weights, not its tokenizer, not the libraries that read them."""
    (tmp_path / "two.csv").write_text("good,bad\nThe cats sleep.,The cats that.\n")
    suite, model = str(tmp_path / "two.csv"), f"causal:{causal_dir}"
    first = evaluate(suite, [model])[0]
    code = f"from acceptability import evaluate; print(evaluate({suite!r}, [{model!r}])[0])"
    watch = code + "; import sys; assert not {'torch', 'transformers'} & set(sys.modules), 'loaded'"
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    assert done.stdout == f"{first}\n"
