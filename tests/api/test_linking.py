"""The constants of MORCELA and SLLN-LP: recovered where they are known, and no others are better where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from acceptability import LabelScores, Sentence, Suite, TokenScores
from acceptability.api.linking import fit_alpha, fit_beta_gamma, fit_morcela, fit_slln_lp, link
from acceptability.errors import MeasureError, ScoreError, SpecError, Undefined
from acceptability.measures.correlation import pearson
from acceptability.specs import parse_signature
from acceptability.suites.tables import write_jsonl
from program import typed

WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture
def unigrams(tmp_path: Path) -> str:
    path = tmp_path / "unigrams.tsv"
    path.write_text("word\tcount\n" + "".join(f"{word}\t{2 ** (i % 9)}\n" for i, word in enumerate(WORDS)))
    return str(path)


def make_sums(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    units = generator.integers(3, 12, n).astype(float)
    single = -units * generator.uniform(4, 9, n)
    return single + units * generator.normal(1, 2, n), single, units


def make_suite(noise: float = 0.3, n: int = 80) -> tuple[Suite, dict[str, TokenScores]]:
    """Ratings follow (l + 0.5 * number of words) / n, and so do not depend on unigrams."""
    generator = np.random.default_rng(2)
    sentences, outputs = [], {}
    for i in range(n):
        words = generator.choice(WORDS, size=generator.integers(3, 10)).tolist()
        text, starts = " ".join(words), np.cumsum([0, *(len(word) + 1 for word in words)])
        spans = tuple((int(start), int(start) + len(word)) for start, word in zip(starts[:-1], words, strict=True))
        outputs[str(i)] = TokenScores(text, tuple(words), spans, generator.normal(-5, 2, len(words)).astype(np.float32))
        rating = (outputs[str(i)].logprobs.sum() + 8) / len(words) + noise * generator.normal()
        sentences.append(Sentence(str(i), text, rating=float(rating), tags={"item": str(i // 4)}))
    return Suite("m", tuple(sentences)), outputs


@pytest.mark.parametrize(("beta", "gamma"), [(1.0, 0.0), (0.3, 5.0), (-0.5, -2.0)])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (2.5, -4.0)])
def test_known_constants_are_recovered(beta: float, gamma: float, scale: float, shift: float) -> None:
    model, single, units = make_sums()
    ratings = scale * (model - beta * single + gamma) / units + shift
    assert fit_beta_gamma(ratings, model, single, units) == pytest.approx((beta, gamma), abs=1e-9)


def test_no_other_constants_correlate_better() -> None:
    model, single, units = make_sums()
    ratings = (model - 0.7 * single + 3) / units + np.random.default_rng(0).normal(size=60)

    def correlation(constants: np.ndarray) -> float:
        return pearson((model - constants[0] * single + constants[1]) / units, ratings)

    fit = fit_beta_gamma(ratings, model, single, units)
    best = minimize(
        lambda constants: -correlation(constants),
        [1.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14},
    )
    assert correlation(np.array(fit)) == pytest.approx(-best.fun, abs=1e-9)
    assert correlation(np.array(fit)) >= -best.fun - 1e-12


def test_morcela_beats_slor_out_of_fold(unigrams: str) -> None:
    suite, outputs = make_suite()
    fit = fit_morcela(suite, outputs, unigrams, group="item", folds=5, seed=1)
    assert fit.reduction.beta == pytest.approx(0, abs=0.2)
    assert fit.reduction.gamma == pytest.approx(8, abs=2)
    assert fit.correlations["morcela"] > fit.correlations["slor"] > 0
    assert {name: len(values) for name, values in fit.by_fold.items()} == {"morcela": 5, "slor": 5, "lp": 5}
    for name, values in fit.by_fold.items():
        assert fit.correlations[name] == pytest.approx(np.mean(values))
    fields = parse_signature(fit.signature)
    assert fields["measure"] == "fit_morcela(group='item', folds=5, seed=1)"
    assert fields["n"] == "80"
    assert repr(fit.reduction) in fields["reduction"]


def test_a_fold_is_scored_with_the_constants_of_the_others(unigrams: str) -> None:
    """Repeats the computation step by step for two folds of items."""
    suite, outputs = make_suite()
    fit = fit_morcela(suite, outputs, unigrams, group="item", folds=2, seed=0)
    items = sorted({sentence.tags["item"] for sentence in suite.sentences})
    shuffled = np.random.default_rng(0).permutation(items)
    ratings = np.array([sentence.rating for sentence in suite.sentences])
    reduction = fit.reduction
    rows = np.array(
        [[*(part.sum() for part in reduction.unit_logprobs(outputs[sentence.id]))] for sentence in suite.sentences]
    )
    lengths = np.array([len(outputs[sentence.id].tokens) for sentence in suite.sentences], float)
    for number in (0, 1):
        inside = np.array([sentence.tags["item"] in shuffled[number::2] for sentence in suite.sentences])
        beta, gamma = fit_beta_gamma(ratings[~inside], *rows[~inside].T, lengths[~inside])
        morcela = ((rows[:, 0] - beta * rows[:, 1] + gamma) / lengths)[inside]
        slor = ((rows[:, 0] - rows[:, 1]) / lengths)[inside]
        expected = [pearson(scores, ratings[inside]) for scores in (morcela, slor, rows[inside, 0])]
        assert [fit.by_fold[name][number] for name in ("morcela", "slor", "lp")] == pytest.approx(expected, abs=1e-9)


def test_the_fitted_reduction_gives_the_fitted_scores(unigrams: str) -> None:
    suite, outputs = make_suite(noise=0)
    fit = fit_morcela(suite, outputs, unigrams, folds=4)
    scores = np.array([fit.reduction(outputs[sentence.id]) for sentence in suite.sentences])
    assert pearson(scores, np.array([sentence.rating for sentence in suite.sentences])) == pytest.approx(1, abs=1e-9)
    assert fit.correlations["morcela"] == pytest.approx(1, abs=1e-9)


def test_row_order_is_irrelevant(unigrams: str) -> None:
    suite, outputs = make_suite()
    reversed_suite = Suite("m", suite.sentences[::-1])
    first, second = (
        fit_morcela(variant, outputs, unigrams, group="item", folds=5) for variant in (suite, reversed_suite)
    )
    assert first.correlations == pytest.approx(second.correlations, abs=1e-12)


def test_undetermined_constants_are_refused() -> None:
    model, single, units = make_sums()
    with pytest.raises(Undefined, match="different lengths"):
        fit_beta_gamma(model, model, single, np.full(60, 4.0))
    with pytest.raises(Undefined, match="too few"):
        fit_beta_gamma(model[:3], model[:3], single[:3], units[:3])
    with pytest.raises(Undefined, match="too few, or too similar"):
        fit_beta_gamma(model, model, 2 * model, units)
    with pytest.raises(Undefined, match="do not rise"):
        fit_beta_gamma(-model / units, model, single, units)


def test_errors_name_what_is_missing(unigrams: str) -> None:
    suite, outputs = make_suite(n=20)
    with pytest.raises(ScoreError, match="sentence '3'; there is nothing"):
        fit_morcela(suite, {key: output for key, output in outputs.items() if key != "3"}, unigrams)
    with pytest.raises(ScoreError, match="a classifier's logits"):
        fit_morcela(suite, outputs | {"3": LabelScores("x", (0.0, 1.0))}, unigrams)
    with pytest.raises(MeasureError, match="by 'itm': 20 rated sentences lack that tag"):
        fit_morcela(suite, outputs, unigrams, group="itm")
    with pytest.raises(MeasureError, match="6 folds need as many groups; there are 5"):
        fit_morcela(suite, outputs, unigrams, group="item", folds=6)
    with pytest.raises(MeasureError, match="each needs two"):
        fit_morcela(suite, outputs, unigrams, folds=20)
    with pytest.raises(MeasureError, match="folds is 1"):
        fit_morcela(suite, outputs, unigrams, folds=1)
    with pytest.raises(MeasureError, match="no ratings"):
        fit_morcela(Suite("m", (Sentence("a", "x"),)), outputs, unigrams)


def test_the_signature_names_the_model_and_notes_count_unlisted_words(tmp_path: Path) -> None:
    suite, outputs = make_suite()
    table = tmp_path / "few.tsv"
    table.write_text("word\tcount\n" + "".join(f"{word}\t{2**i}\n" for i, word in enumerate(WORDS[:9])))
    fit = fit_morcela(suite, outputs, str(table), folds=4, model="toy(seed=1)")
    fields = parse_signature(fit.signature)
    assert fields["model"] == "toy(seed=1)"
    assert fields["ratings"] == "standardised(ddof=0)"
    assert "acceptability" in fields
    units = [token for output in outputs.values() for token in output.tokens]
    lacking = sum(token not in WORDS[:9] for token in units)
    assert fit.notes[-1].startswith(f"{lacking} of {len(units)} words are not in few.tsv#")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--folds", "90"], "Give fewer folds"), (["--by", "genre"], "lack that tag"), (["--folds", "1"], "folds is 1")],
)
def test_impossible_folds_are_refused_before_a_model_runs(
    options: list[str], message: str, unigrams: str, tmp_path: Path, own_home: Path
) -> None:
    suite, _ = make_suite()
    write_jsonl(suite, tmp_path / "m.jsonl")
    line = ["link", str(tmp_path / "m.jsonl"), "--model", "uniform", "--unigrams", unigrams, *options]
    done = typed(line, tmp_path, dict(os.environ))
    assert done.returncode == 1
    assert message in done.stderr
    assert not (own_home / "scores.sqlite").exists()


@pytest.mark.parametrize("alpha", [0.0, 0.137, 0.5, 0.991, 1.0])
def test_a_known_alpha_is_recovered(alpha: float) -> None:
    model, _, units = make_sums()
    assert fit_alpha(3 * model / units**alpha - 1, model, units) == pytest.approx(alpha, abs=1e-6)


def test_no_other_alpha_correlates_better() -> None:
    model, _, units = make_sums()
    ratings = model / units**0.6 + 3 * np.random.default_rng(1).normal(size=60)
    fitted = pearson(model / units ** fit_alpha(ratings, model, units), ratings)
    assert fitted >= max(pearson(model / units**alpha, ratings) for alpha in np.linspace(0, 1, 5001)) - 1e-12


def test_an_alpha_is_undetermined_by_equal_lengths_and_by_ratings_that_fall() -> None:
    model, _, units = make_sums()
    with pytest.raises(Undefined, match="same number of tokens"):
        fit_alpha(model, model, np.full(60, 5.0))
    with pytest.raises(Undefined, match="do not rise"):
        fit_alpha(-model / np.sqrt(units), model, units)


def make_sublinear_suite(alpha: float) -> tuple[Suite, dict[str, TokenScores]]:
    suite, outputs = make_suite()
    generator = np.random.default_rng(5)
    sentences = []
    for sentence in suite.sentences:
        logprobs = outputs[sentence.id].logprobs
        rating = float(logprobs.sum() / len(logprobs) ** alpha) + 0.5 * generator.normal()
        sentences.append(Sentence(sentence.id, sentence.text, rating=rating, tags=sentence.tags))
    return Suite("m", tuple(sentences)), outputs


def test_a_fold_is_scored_with_the_alpha_of_the_others() -> None:
    """Repeats the computation step by step for two folds of items."""
    suite, outputs = make_sublinear_suite(0.5)
    fit = fit_slln_lp(suite, outputs, group="item", folds=2, seed=0)
    items = sorted({sentence.tags["item"] for sentence in suite.sentences})
    shuffled = np.random.default_rng(0).permutation(items)
    ratings = np.array([sentence.rating for sentence in suite.sentences])
    sums, lengths = (
        np.array([float(count(outputs[sentence.id].logprobs)) for sentence in suite.sentences])
        for count in (np.sum, len)
    )
    for number in (0, 1):
        inside = np.array([sentence.tags["item"] in shuffled[number::2] for sentence in suite.sentences])
        alpha = fit_alpha(ratings[~inside], sums[~inside], lengths[~inside])
        scores = (sums / lengths**alpha, sums / lengths, sums)
        expected = [pearson(values[inside], ratings[inside]) for values in scores]
        assert [fit.by_fold[name][number] for name in ("slln_lp", "mean_lp", "lp")] == pytest.approx(expected, abs=1e-6)
    assert fit.reduction.alpha == pytest.approx(fit_alpha(ratings, sums, lengths), abs=1e-6)
    assert fit.difference.value == pytest.approx(fit.correlations["slln_lp"] - fit.correlations["mean_lp"], abs=1e-9)
    assert fit.difference.low < fit.difference.value < fit.difference.high
    assert parse_signature(fit.signature)["measure"] == "fit_slln_lp(group='item', folds=2, seed=0)"


def test_the_fitted_alpha_is_near_the_true_one_and_its_ends_are_said() -> None:
    suite, outputs = make_sublinear_suite(0.5)
    assert fit_slln_lp(suite, outputs, folds=4).reduction.alpha == pytest.approx(0.5, abs=0.15)
    whole, outputs = make_sublinear_suite(0.0)
    at_zero = Suite(
        "m",
        tuple(
            Sentence(one.id, one.text, rating=float(outputs[one.id].logprobs.sum()), tags=one.tags)
            for one in whole.sentences
        ),
    )
    assert "alpha lies at the end of its range" in fit_slln_lp(at_zero, outputs, folds=4).notes[0]


def test_what_is_fitted_and_the_unigrams_have_to_fit_together(unigrams: str) -> None:
    suite, _ = make_suite()
    with pytest.raises(SpecError, match="MORCELA needs a table of unigrams"):
        link(suite, "uniform")
    with pytest.raises(SpecError, match="slln_lp has no unigram table"):
        link(suite, "uniform", unigrams, fit="slln_lp")
    with pytest.raises(MeasureError, match="expected 'morcela', 'slln_lp'"):
        link(suite, "uniform", fit="slln")
