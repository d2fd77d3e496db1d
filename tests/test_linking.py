"""MORCELA's constants: found again where they are known, as good as any optimiser's where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from acceptability import LabelScores, Sentence, Suite, TokenScores
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.linking import fit_morcela, fitted
from acceptability.measures.correlation import pearson
from acceptability.signature import parse
from acceptability.suites.tables import write_jsonl
from program import typed

WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture
def unigrams(tmp_path: Path) -> str:
    path = tmp_path / "unigrams.tsv"
    path.write_text("word\tcount\n" + "".join(f"{word}\t{2 ** (i % 9)}\n" for i, word in enumerate(WORDS)))
    return str(path)


def sums(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    units = generator.integers(3, 12, n).astype(float)
    single = -units * generator.uniform(4, 9, n)
    return single + units * generator.normal(1, 2, n), single, units


def made(noise: float = 0.3, n: int = 80) -> tuple[Suite, dict[str, TokenScores]]:
    """Ratings follow (l + 0.5 * number of words) / n, so they do not care for unigrams."""
    generator = np.random.default_rng(2)
    sentences, said = [], {}
    for i in range(n):
        words = generator.choice(WORDS, size=generator.integers(3, 10)).tolist()
        text, starts = " ".join(words), np.cumsum([0, *(len(word) + 1 for word in words)])
        spans = tuple((int(start), int(start) + len(word)) for start, word in zip(starts[:-1], words, strict=True))
        said[str(i)] = TokenScores(text, tuple(words), spans, generator.normal(-5, 2, len(words)).astype(np.float32))
        rating = (said[str(i)].logprobs.sum() + 8) / len(words) + noise * generator.normal()
        sentences.append(Sentence(str(i), text, rating=float(rating), tags={"item": str(i // 4)}))
    return Suite("m", tuple(sentences)), said


@pytest.mark.parametrize(("beta", "gamma"), [(1.0, 0.0), (0.3, 5.0), (-0.5, -2.0)])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (2.5, -4.0)])
def test_known_constants_are_found_again(beta: float, gamma: float, scale: float, shift: float) -> None:
    model, single, units = sums()
    ratings = scale * (model - beta * single + gamma) / units + shift
    assert fitted(ratings, model, single, units) == pytest.approx((beta, gamma), abs=1e-9)


def test_no_other_constants_correlate_better() -> None:
    model, single, units = sums()
    ratings = (model - 0.7 * single + 3) / units + np.random.default_rng(0).normal(size=60)

    def linked(constants: np.ndarray) -> float:
        return pearson((model - constants[0] * single + constants[1]) / units, ratings)

    found = fitted(ratings, model, single, units)
    best = minimize(
        lambda each: -linked(each), [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}
    )
    assert linked(np.array(found)) == pytest.approx(-best.fun, abs=1e-9)
    assert linked(np.array(found)) >= -best.fun - 1e-12


def test_out_of_fold_it_beats_what_was_not_fitted(unigrams: str) -> None:
    suite, said = made()
    found = fit_morcela(suite, said, unigrams, group="item", folds=5, seed=1)
    assert found.reduction.beta == pytest.approx(0, abs=0.2)
    assert found.reduction.gamma == pytest.approx(8, abs=2)
    assert found.correlations["morcela"] > found.correlations["slor"] > 0
    assert {name: len(each) for name, each in found.by_fold.items()} == {"morcela": 5, "slor": 5, "lp": 5}
    for name, each in found.by_fold.items():
        assert found.correlations[name] == pytest.approx(np.mean(each))
    fields = parse(found.signature)
    assert fields["measure"] == "fit_morcela(group='item', folds=5, seed=1)"
    assert fields["n"] == "80"
    assert repr(found.reduction) in fields["reduction"]


def test_a_fold_is_scored_with_the_constants_of_the_others(unigrams: str) -> None:
    """Made again step by step for two folds of items."""
    suite, said = made()
    found = fit_morcela(suite, said, unigrams, group="item", folds=2, seed=0)
    items = sorted({each.tags["item"] for each in suite.sentences})
    dealt = np.random.default_rng(0).permutation(items)
    ratings = np.array([each.rating for each in suite.sentences])
    reduction = found.reduction
    rows = np.array([[*(part.sum() for part in reduction.units(said[each.id]))] for each in suite.sentences])
    lengths = np.array([len(said[each.id].tokens) for each in suite.sentences], float)
    for number in (0, 1):
        inside = np.array([each.tags["item"] in dealt[number::2] for each in suite.sentences])
        beta, gamma = fitted(ratings[~inside], *rows[~inside].T, lengths[~inside])
        morcela = ((rows[:, 0] - beta * rows[:, 1] + gamma) / lengths)[inside]
        slor = ((rows[:, 0] - rows[:, 1]) / lengths)[inside]
        expected = [pearson(each, ratings[inside]) for each in (morcela, slor, rows[inside, 0])]
        assert [found.by_fold[name][number] for name in ("morcela", "slor", "lp")] == pytest.approx(expected, abs=1e-9)


def test_the_fit_scores_as_the_reduction_does(unigrams: str) -> None:
    suite, said = made(noise=0)
    found = fit_morcela(suite, said, unigrams, folds=4)
    scores = np.array([found.reduction(said[each.id]) for each in suite.sentences])
    assert pearson(scores, np.array([each.rating for each in suite.sentences])) == pytest.approx(1, abs=1e-9)
    assert found.correlations["morcela"] == pytest.approx(1, abs=1e-9)


def test_row_order_is_irrelevant(unigrams: str) -> None:
    suite, said = made()
    turned = Suite("m", suite.sentences[::-1])
    first, second = (fit_morcela(each, said, unigrams, group="item", folds=5) for each in (suite, turned))
    assert first.correlations == pytest.approx(second.correlations, abs=1e-12)


def test_constants_that_cannot_be_told() -> None:
    model, single, units = sums()
    with pytest.raises(Undefined, match="different lengths"):
        fitted(model, model, single, np.full(60, 4.0))
    with pytest.raises(Undefined, match="too few"):
        fitted(model[:3], model[:3], single[:3], units[:3])
    with pytest.raises(Undefined, match="too few, or too much alike"):
        fitted(model, model, 2 * model, units)
    with pytest.raises(Undefined, match="do not rise"):
        fitted(-model / units, model, single, units)


def test_what_is_missing_is_named(unigrams: str) -> None:
    suite, said = made(n=20)
    with pytest.raises(ScoreError, match="sentence '3'; there is nothing"):
        fit_morcela(suite, {key: each for key, each in said.items() if key != "3"}, unigrams)
    with pytest.raises(ScoreError, match="a classifier's logits"):
        fit_morcela(suite, said | {"3": LabelScores("x", (0.0, 1.0))}, unigrams)
    with pytest.raises(MeasureError, match="by 'itm': 20 rated sentences lack that tag"):
        fit_morcela(suite, said, unigrams, group="itm")
    with pytest.raises(MeasureError, match="6 folds need as many groups; there are 5"):
        fit_morcela(suite, said, unigrams, group="item", folds=6)
    with pytest.raises(MeasureError, match="each needs two"):
        fit_morcela(suite, said, unigrams, folds=20)
    with pytest.raises(MeasureError, match="folds is 1"):
        fit_morcela(suite, said, unigrams, folds=1)
    with pytest.raises(MeasureError, match="no ratings"):
        fit_morcela(Suite("m", (Sentence("a", "x"),)), said, unigrams)


def test_the_signature_names_the_model_and_the_notes_what_the_table_lacks(tmp_path: Path) -> None:
    suite, said = made()
    table = tmp_path / "few.tsv"
    table.write_text("word\tcount\n" + "".join(f"{word}\t{2**i}\n" for i, word in enumerate(WORDS[:9])))
    found = fit_morcela(suite, said, str(table), folds=4, model="toy(seed=1)")
    fields = parse(found.signature)
    assert fields["model"] == "toy(seed=1)"
    assert fields["ratings"] == "standardised(ddof=0)"
    assert "acceptability" in fields
    units = [token for each in said.values() for token in each.tokens]
    lacking = sum(token not in WORDS[:9] for token in units)
    assert found.notes[-1].startswith(f"{lacking} of {len(units)} words are not in few.tsv#")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--folds", "90"], "Give fewer folds"), (["--by", "genre"], "lack that tag"), (["--folds", "1"], "folds is 1")],
)
def test_folds_that_cannot_be_made_are_refused_before_a_model_is_asked(
    options: list[str], message: str, unigrams: str, tmp_path: Path, own_home: Path
) -> None:
    suite, _ = made()
    write_jsonl(suite, tmp_path / "m.jsonl")
    line = ["link", str(tmp_path / "m.jsonl"), "--model", "uniform", "--unigrams", unigrams, *options]
    done = typed(line, tmp_path, dict(os.environ))
    assert done.returncode == 1
    assert message in done.stderr
    assert not (own_home / "scores.sqlite").exists()
