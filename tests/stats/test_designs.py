"""Ready-made designs: the columns they derive by hand, and effects that were simulated and have to be found."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("formulaic", reason="regress needs the extra stats")

from scipy.special import expit

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.designs import DESIGNS, fit_design, prepare_design


def simulate_models(effect: float, *, seed: int = 1) -> dict[str, list[object]]:
    """Return right and wrong answers of two models to 20 items of each of 12 paradigms."""
    generator = np.random.default_rng(seed)
    paradigm, item, model = (values.ravel() for values in np.indices((12, 20, 2)))
    log_odds = (
        1
        + generator.normal(0, 0.7, 12)[paradigm]
        + generator.normal(0, 0.7, (12, 20))[paradigm, item]
        + model * (effect + generator.normal(0, 0.3, 12)[paradigm])
    )
    correct = (generator.random(len(model)) < expit(log_odds)).astype(int)
    return {
        "model": ["ab"[index] for index in model],
        "paradigm": [f"p{index}" for index in paradigm],
        "item": item.tolist(),
        "correct": correct.tolist(),
    }


def test_models_are_compared_over_items_nested_in_paradigms() -> None:
    fit = fit_design("models", simulate_models(1.5))
    assert fit.prepared.formula == "correct ~ model + (1 + model | paradigm) + (1 | item)"
    # Item 0 of one paradigm is another item than item 0 of the next.
    assert {effect.group: effect.groups for effect in fit.model.random_effects} == {"paradigm": 12, "item": 240}
    assert fit.model["model[T.b]"].estimate == pytest.approx(1.5, abs=0.6)
    assert fit.comparison is not None
    assert (fit.comparison.df, fit.comparison.p < 1e-3) == (1, True)


def test_equal_models_do_not_differ() -> None:
    fit = fit_design("models", simulate_models(0.0))
    assert fit.comparison is not None
    assert fit.comparison.p > 0.05
    assert "whether the models differ" in str(fit)


def test_a_bootstrap_replaces_the_chi_squared_distribution() -> None:
    table = simulate_seeds()
    del table["seed"]
    fit = fit_design("models", table, draws=40)
    assert fit.comparison is not None
    assert fit.comparison.test == "likelihood-ratio test, parametric bootstrap, 40 draws"
    assert fit.model.family == "gaussian"


def simulate_seeds() -> dict[str, list[object]]:
    generator = np.random.default_rng(3)
    model, seed, item = (values.ravel() for values in np.indices((2, 12, 60)))
    values = (
        0.5 * model
        + generator.normal(0, 0.4, (2, 12))[model, seed]
        + generator.normal(0, 1, 60)[item]
        + generator.normal(0, 1, len(item))
    )
    return {
        "model": ["ab"[index] for index in model],
        "seed": seed.tolist(),
        "item": item.tolist(),
        "difference": values.tolist(),
    }


def test_the_same_seed_of_two_models_is_two_seeds() -> None:
    table = simulate_seeds()
    fit = fit_design("seeds", table)
    assert {effect.group: effect.groups for effect in fit.model.random_effects} == {"seed": 24, "item": 60}
    # The mean over seeds, and the standard error that 12 seeds a model with a standard deviation of .4 allow.
    values, second = np.array(table["difference"]), np.array(table["model"]) == "b"
    coefficient = fit.model["model[T.b]"]
    assert coefficient.estimate == pytest.approx(values[second].mean() - values[~second].mean(), abs=1e-6)
    means = np.array([values[second == kind].reshape(12, 60).mean(axis=1) for kind in (False, True)])
    # Between seeds a design with equally many rows each is a t test of the means of seeds.
    assert coefficient.se == pytest.approx(np.sqrt(means.var(axis=1, ddof=1).sum() / 12), rel=0.01)
    assert coefficient.df == pytest.approx(22, rel=0.01)


def test_seeds_of_one_model_give_an_interval_and_no_test() -> None:
    table = {name: values[:720] for name, values in simulate_seeds().items() if name != "model"}
    fit = fit_design("seeds", table)
    assert fit.comparison is None
    assert fit.prepared.formula == "difference ~ 1 + (1 | seed) + (1 | item)"
    assert fit.model["Intercept"].low < np.mean(table["difference"]) < fit.model["Intercept"].high


def test_few_groups_are_noted() -> None:
    table = simulate_models(0.0)
    few = {name: values[:120] for name, values in table.items()}
    assert "there are only 3 values of 'paradigm'" in prepare_design("models", few).notes[0]
    assert prepare_design("models", table).notes == ()


def test_scores_predict_ratings_beyond_length() -> None:
    generator = np.random.default_rng(4)
    person, item = (values.ravel() for values in np.indices((15, 40)))
    length, score = generator.normal(8, 2, 40), generator.normal(-30, 6, 40)
    rating = (
        4
        + 0.8 * ((score - score.mean()) / score.std())[item]
        + generator.normal(0, 0.5, 15)[person]
        + generator.normal(0, 0.5, 40)[item]
        + generator.normal(0, 1, len(item))
    )
    table = {"rating": rating, "score": score[item], "participant": person, "item": item, "length": length[item]}
    fit = fit_design("ratings", table)
    assert fit.model.formula == "rating ~ score + length + (1 + score | participant) + (1 | item)"
    assert fit.model["score"].estimate == pytest.approx(0.8, abs=0.25)
    assert fit.comparison is not None
    assert fit.comparison.p < 1e-4
    assert fit.prepared.tested == "whether scores predict ratings beyond length"


def make_reading_times() -> dict[str, list[object]]:
    """Return the reading times of 8 readers of 15 texts of 8 words; surprisal slows the next word."""
    generator = np.random.default_rng(5)
    subject, item, position = (values.ravel() for values in np.indices((8, 15, 8)))
    surprisal = generator.gamma(2, 3, (15, 8))
    previous = np.column_stack([np.zeros(15), surprisal[:, :-1]])
    rt = (
        300
        + 6 * surprisal[item, position]
        + 4 * previous[item, position]
        + generator.normal(0, 30, 8)[subject]
        + generator.normal(0, 10, (15, 8))[item, position]
        + generator.normal(0, 25, len(item))
    )
    return {
        "rt": rt.tolist(),
        "surprisal": surprisal[item, position].tolist(),
        "subject": subject.tolist(),
        "item": item.tolist(),
        "position": (position + 1).tolist(),
    }


def test_surprisal_and_its_spill_over_slow_down_reading() -> None:
    fit = fit_design("reading-times", make_reading_times())
    assert fit.comparison is not None
    assert (fit.comparison.df, fit.comparison.p < 1e-10) == (3, True)
    frame = fit.prepared.frame
    # The first two words of each text have no two words before them.
    assert len(frame) == 8 * 15 * 6
    assert "240 rows of words without 2 words before them are left out" in fit.prepared.notes
    per_bit = {name: fit.model[name].estimate for name in ("surprisal", "surprisal_previous1", "surprisal_previous2")}
    # Coefficients are per standard deviation of surprisal, about 4.2.
    assert per_bit["surprisal"] == pytest.approx(6 * 4.2, rel=0.3)
    assert per_bit["surprisal_previous1"] == pytest.approx(4 * 4.2, rel=0.3)
    assert abs(per_bit["surprisal_previous2"]) < 8


def test_earlier_words_come_from_the_text_where_a_reader_skipped_them() -> None:
    table = make_reading_times()
    # Reader 0 lost the second word of text 0: the third word still has both words before it.
    skipped = [
        subject == 0 and item == 0 and position == 2
        for subject, item, position in zip(table["subject"], table["item"], table["position"], strict=True)
    ]
    kept = {
        name: [value for value, gone in zip(values, skipped, strict=True) if not gone] for name, values in table.items()
    }
    frame = prepare_design("reading-times", kept).frame
    third = frame[(frame["subject"] == 0) & (frame["word"] == "0:3")]
    other = frame[(frame["subject"] == 1) & (frame["word"] == "0:3")]
    assert third["surprisal_previous1"].tolist() == other["surprisal_previous1"].tolist()
    assert len(third) == 1


def test_a_word_with_two_surprisals_is_refused() -> None:
    table = make_reading_times()
    table["surprisal"][0] = 99.0
    with pytest.raises(MeasureError, match="item 0, position 1: the word has different values of surprisal"):
        prepare_design("reading-times", table)


def test_phenomena_are_learned_at_different_rates() -> None:
    generator = np.random.default_rng(6)
    item, checkpoint = (values.ravel() for values in np.indices((80, 6)))
    steps = np.array([0, 10, 100, 1000, 10_000, 100_000])
    fast = item % 2
    log_odds = generator.normal(0, 0.5, 80)[item] + (0.1 + 0.6 * fast) * (np.log10(steps + 1)[checkpoint])
    table = {
        "correct": (generator.random(len(item)) < expit(log_odds)).astype(int),
        "step": steps[checkpoint],
        "item": item,
        "phenomenon": np.where(fast, "agreement", "islands"),
    }
    fit = fit_design("learning-curve", table)
    assert fit.comparison is not None
    assert (fit.comparison.df, fit.comparison.p < 1e-3) == (1, True)
    assert fit.model["log_step:phenomenon[T.islands]"].estimate < -0.5
    del table["phenomenon"]
    fit = fit_design("learning-curve", table)
    assert fit.prepared.tested == "whether accuracy changes with training"


def test_rows_without_a_value_are_left_out_and_counted() -> None:
    table = simulate_models(0.0)
    table["correct"][:3] = [None] * 3
    assert "3 of 480 rows lack a value and are left out" in prepare_design("models", table).notes


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("model", {}, "there is no design 'model'"),
        ("ratings", {"rating": [1.0], "score": [2.0]}, r"needs the column 'participant' \(the person\)"),
        ("models", {"model": ["a", "b"], "item": [1, 1]}, "neither a column 'correct'"),
        ("learning-curve", {"step": [1], "item": [1]}, "neither a column 'correct'"),
    ],
)
def test_what_is_missing_is_named(name: str, table: dict[str, list[object]], message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        prepare_design(name, table)


def test_one_model_cannot_be_compared() -> None:
    with pytest.raises(Undefined, match="column 'model' has 1 different values"):
        prepare_design("models", {"model": ["a", "a"], "item": [1, 2], "correct": [0, 1]})


def test_designs_say_what_they_need() -> None:
    assert [*DESIGNS] == ["models", "seeds", "ratings", "reading-times", "learning-curve"]
    assert all(design.question.endswith("?") for design in DESIGNS.values())
