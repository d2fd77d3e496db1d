"""The models that come with the package: small, whole, told about, and able to tell better from worse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import acceptability
from acceptability import evaluate, load_model, load_suite
from acceptability.models import list_named_models

EMBEDDED = Path(acceptability.__file__).parent / "embedded"
FOLDERS = sorted(path for path in EMBEDDED.iterdir() if path.is_dir())
MOST = {"each": 25_000_000, "together": 60_000_000}
BLIMP = {"mini-masked": 0.76, "mini-causal": 0.75, "mini-lstm": 0.65}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_is_small_has_a_card_and_no_pickle(folder: Path) -> None:
    assert size(folder) <= MOST["each"]
    told = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("## Data", "## Licence", "## Recipe", "## Cost", "## Results"):
        assert part in card
    assert told["licence"] in card
    assert "CC BY-SA" in told["licence"]
    assert "public domain" in told["licence"]
    assert told["corpus"] in card
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".tsv", ".md", ".safetensors"}
    assert folder.name in list_named_models()


def test_all_together_are_small() -> None:
    assert sum(map(size, FOLDERS)) <= MOST["together"]


def test_the_trigram_needs_neither_torch_nor_another_package() -> None:
    code = (
        "import sys; from acceptability import judge;"
        "a, b = judge(['The boys were late.', 'The boys was late.'], 'trigram');"
        "print(a.score > b.score, {'torch', 'kenlm', 'pocketsphinx', 'scipy.stats'} & set(sys.modules) or 'alone')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "alone"]


def test_the_trigram_knows_more_than_chance() -> None:
    (found,) = evaluate(load_suite("starter"), ["trigram"], measure=["PairAccuracy(ties=0.5)"])
    assert found.low > 0.55


@pytest.mark.parametrize(
    ("name", "part"), [("mini-masked", "/subject_verb_agreement"), ("mini-causal", ""), ("mini-lstm", "")]
)
def test_the_small_networks_know_much_more(name: str, part: str) -> None:
    pytest.importorskip("transformers")
    (found,) = evaluate(load_suite(f"starter{part}"), [name], measure=["PairAccuracy(ties=0.5)"])
    assert found.value > 0.8


def test_transformers_opens_them_without_our_code() -> None:
    pytest.importorskip("transformers")
    code = (
        "import sys; from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer;"
        "opened = [(each, AutoTokenizer.from_pretrained(f'{sys.argv[1]}/{name}')) for name, each in ("
        "('mini-masked', AutoModelForMaskedLM.from_pretrained(f'{sys.argv[1]}/mini-masked')),"
        "('mini-causal', AutoModelForCausalLM.from_pretrained(f'{sys.argv[1]}/mini-causal')))];"
        "print(*(net(**cut('The cats sleep.', return_tensors='pt')).logits.shape[-1] for net, cut in opened));"
        "print('acceptability' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(EMBEDDED)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8192", "8192", "False"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BLIMP)
def test_what_it_reaches_on_blimp(name: str) -> None:
    pytest.importorskip("transformers")
    (found,) = evaluate("blimp", [name], measure=["PairAccuracy"])
    assert found.value >= BLIMP[name]


def test_its_signature_is_that_of_its_content() -> None:
    assert load_model("trigram").signature.startswith("ngram:trigram@")
