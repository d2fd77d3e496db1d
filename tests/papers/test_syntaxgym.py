"""Published outcomes of SyntaxGym's items, and our models beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.api.evaluation import evaluate
from acceptability.papers import study
from acceptability.papers.syntaxgym_accuracy import compute_outcomes, read_published_outcomes
from acceptability.suites import find_entries, load_suite
from published import compute_published_cells
from tiny import arpa_text

pytestmark = pytest.mark.usefixtures("data")
MODELS = ["gpt-2-pretrained", "grnn", "transformer-xl"]


def test_the_published_outcomes_are_of_every_item_of_every_suite() -> None:
    found = read_published_outcomes()
    assert list(found) == MODELS
    for entry in find_entries("syntaxgym"):
        items = {each.tags["item"] for each in load_suite(entry.id).sentences}
        assert all(found[model][entry.id.partition("/")[2]].keys() == items for model in MODELS)
    assert [sum(found[model]["fgd_hierarchy"].values()) for model in MODELS] == [15, 12, 6]


def test_without_models_only_the_published_numbers_are_shown() -> None:
    found = compute_published_cells("syntaxgym")
    suites = [cell for cell in found if cell.table == "Items right, by suite"]
    assert len(suites) == 34 * 3
    assert all(cell.ours is None and cell.note and cell.source == "published outcomes" for cell in suites)
    (npi,) = (cell for cell in suites if (cell.row, cell.column) == ("npi_src_any", "gpt-2-pretrained"))
    assert (npi.paper, npi.note) == ("0.5789", "22 of 38 items; surprisals are not published")
    means = {(cell.row, cell.column): cell.ours for cell in found if cell.table == "Mean of suites, by circuit"}
    assert len(means) == 7 * 3
    assert means["agreement", "grnn"] == pytest.approx((8 + 9 + 13) / 3 / 19)
    assert means["center embedding", "transformer-xl"] == pytest.approx((25 + 20) / 2 / 28)


@pytest.fixture
def bigram(data: Path, tmp_path: Path) -> Path:
    """A bigram of every fifth sentence of the suites."""
    path = tmp_path / "suites.arpa"
    texts = [each.text for each in load_suite("syntaxgym").sentences[::5]]
    path.write_text(arpa_text(texts), encoding="utf-8")
    return path


def test_a_tiny_model_is_shown_beside_the_published_ones_on_all_suites(bigram: Path) -> None:
    model = f"ngram:{bigram}"
    found = study("syntaxgym", [model])
    ours = {cell.row: cell for cell in found if cell.column == model and cell.table == "Items right, by suite"}
    assert list(ours) == [entry.id.partition("/")[2] for entry in find_entries("syntaxgym")]
    for name in ("cleft", "fgd_hierarchy", "npi_orc_ever"):
        (alone,) = evaluate(f"syntaxgym/{name}", [model], measure=["Predictions(per='first')"])
        assert ours[name].ours == alone.value
        assert ours[name].source == f"re-scored with {model}"
        assert f"of {alone.n} items; items with the outcome of others" in ours[name].note
    assert 0 < sum(cell.ours for cell in ours.values()) < 34
    rows = [cell.column for cell in found if cell.row == "mvrr"]
    assert rows == [*MODELS, model]
    (mean,) = (cell for cell in found if (cell.row, cell.column) == ("all suites", model))
    assert mean.ours == pytest.approx(sum(cell.ours for cell in ours.values()) / 34)


def test_a_tiny_neural_model_is_evaluated(causal_dir: Path) -> None:
    suite = load_suite("syntaxgym/nn-nv-rpl")
    found = compute_outcomes(suite, f"causal:{causal_dir}")
    assert list(found) == ["nn-nv-rpl"]
    (result,) = evaluate(suite, [f"causal:{causal_dir}"], measure=["Predictions(per='first')"])
    assert found["nn-nv-rpl"] == {"1": bool(result.value)}


def test_the_uniform_model_is_right_only_where_lengths_differ() -> None:
    suite = load_suite("syntaxgym")
    found = compute_outcomes(suite, "uniform")
    right = {name for name, items in found.items() if any(items.values())}
    assert right <= {"cleft", "cleft_modifier", "fgd_hierarchy"}
    assert not any(found["npi_orc_any"].values())
