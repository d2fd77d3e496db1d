"""Measures whose row is a set of sentences: set accuracy, and PBC within sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from acceptability import PBC, Bootstrap, Scores, Sentence, SetAccuracy, Suite, compare, measure
from acceptability.errors import MeasureError, SuiteError, Undefined
from acceptability.measures import list_available_data, load_measure
from acceptability.specs import parse_signature

CLASS = {"b": "baseline", "d": "distractor", "u": "ungrammatical"}
NUMBERS = st.integers(-6, 6).map(float)


def sets(*rows: tuple[str, str, float], **more: str) -> tuple[Suite, Scores]:
    """Rows are set, class (b, d, u) and score."""
    sentences = tuple(
        Sentence(str(i), "x", label=int(cls != "u"), tags={"set": name, "class": CLASS[cls], "kind": name[0], **more})
        for i, (name, cls, _) in enumerate(rows)
    )
    return Suite("s", sentences), Scores({str(i): score for i, (_, _, score) in enumerate(rows)}, "m")


def value(measure, suite: Suite, scores: Scores) -> float:
    return measure.value(measure.units(suite, scores))


class TestSetAccuracy:
    def test_by_hand(self) -> None:
        right = [("a1", "b", 0.0), ("a1", "d", -1.0), ("a1", "u", -3.0), ("a1", "u", -1.0)]
        tied = [("b1", "b", 0.0), ("b1", "d", -2.0), ("b1", "u", -2.0)]
        wrong = [("b2", "b", -3.0), ("b2", "d", -1.0), ("b2", "u", -2.0)]
        made = sets(*right, *tied, *wrong)
        rows = SetAccuracy().units(*made)
        assert rows.ids == ("a1", "b1", "b2")
        assert rows["below_baseline"].tolist() == [2, 2, -1]
        assert rows["below_distractor"].tolist() == [1, 0, 1]
        assert rows["correct"].tolist() == [1, 0, 0]
        assert SetAccuracy(against="baseline").units(*made)["correct"].tolist() == [1, 1, 0]
        assert SetAccuracy(against="distractor").units(*made)["correct"].tolist() == [1, 0, 1]
        assert value(SetAccuracy(), *made) == pytest.approx(1 / 3)

    def test_a_tie_does_not_depend_on_the_order_of_sentences(self) -> None:
        """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are two numbers where sums are rounded."""
        values = [0.1, 0.2, 0.3]
        rows = [("a", "b", number) for number in values] + [("a", "u", number) for number in values[::-1]]
        made = sets(*rows, ("a", "d", 9.0))
        assert SetAccuracy().units(*made)["below_baseline"].tolist() == [0]

    def test_excluded_sentences_are_counted(self) -> None:
        suite, scores = sets(("a", "b", 1.0), ("a", "d", 1.0), ("a", "u", 0.0), ("b", "b", 1.0), ("b", "u", 0.0))
        bare = Suite("s", (*suite.sentences, Sentence("x", "x")))
        rows = SetAccuracy().units(bare, scores)
        assert len(rows) == 1
        assert rows.notes == (
            "1 sentences without the tags 'set' and 'class' left out",
            "1 sets without all three classes left out",
        )
        with pytest.raises(Undefined, match="no rows"):
            value(SetAccuracy(), *sets(("b", "b", 1.0), ("b", "u", 0.0)))

    def test_sentences_that_another_tag_contradicts_are_left_out(self) -> None:
        tagged = []
        for i, (cls, mark) in enumerate((("b", "1"), ("d", "1"), ("d", "0"), ("u", "0"), ("u", "1"))):
            tagged.append(Sentence(str(i), "x", tags={"set": "a", "class": CLASS[cls], "g": mark}))
        suite, scores = Suite("s", tuple(tagged)), Scores({"0": 3.0, "1": 2.0, "2": -9.0, "3": 1.0, "4": 9.0}, "m")
        assert value(SetAccuracy(), suite, scores) == 0
        rows = SetAccuracy(grammatical="g").units(suite, scores)
        assert rows["correct"].tolist() == [1]
        assert rows.notes == ("2 sentences whose tag 'g' contradicts their class left out",)

    def test_tags_are_checked_before_anything_is_scored(self) -> None:
        suite, scores = sets(("a", "b", 1.0), ("a", "d", 1.0), ("a", "u", 0.0))
        with pytest.raises(MeasureError, match="no sentence has the tag 'sett'.*Did you mean 'set'"):
            measure(suite, Scores({}, "m"), ["SetAccuracy(sets='sett')"])
        with pytest.raises(MeasureError, match="class='x'; expected baseline"):
            value(SetAccuracy(), Suite("s", (Sentence("a", "x", tags={"set": "1", "class": "x"}),)), scores)
        assert "sets" in list_available_data(suite)
        assert "sets" not in list_available_data(Suite("s", (Sentence("a", "x"),)))


class TestPBCWithinSets:
    ROWS = [("a1", "b", 3.0), ("a1", "u", 1.0), ("a1", "u", 2.0), ("a2", "b", 0.0), ("a2", "u", 1.0), ("a2", "d", 4.0)]
    ODD = [("b1", "b", 1.0), ("b1", "d", 2.0), ("b2", "b", 1.0), ("b2", "u", 1.0), ("b3", "u", 1.0)]

    def expected(self) -> list[float]:
        return [
            stats.pointbiserialr([1, 0, 0], [3, 1, 2]).statistic,
            stats.pointbiserialr([1, 0, 1], [0, 1, 4]).statistic,
        ]

    def test_each_set_has_its_own_correlation(self) -> None:
        rows = PBC(per="set").units(*sets(*self.ROWS))
        assert rows.ids == ("a1", "a2")
        assert rows["pbc"].tolist() == pytest.approx(self.expected(), abs=1e-12)
        assert rows.tags[0] == {"set": "a1", "kind": "a"}
        for over, summarise in (("mean", np.mean), ("median", np.median), ("min", min), ("max", max)):
            assert value(PBC(per="set", over=over), *sets(*self.ROWS)) == pytest.approx(
                summarise(self.expected()), abs=1e-12
            )
        for over, share in (("q1", 25), ("q3", 75)):
            expected = np.percentile(self.expected(), share)
            assert value(PBC(per="set", over=over), *sets(*self.ROWS)) == pytest.approx(expected, abs=1e-12)

    def test_sets_without_a_correlation_are_left_out_and_counted(self) -> None:
        suite, scores = sets(*self.ROWS, *self.ODD)
        bare = Suite("s", (*suite.sentences, Sentence("x", "x", label=1)))
        rows = PBC(per="set").units(bare, scores)
        assert len(rows) == 2
        assert rows.notes == (
            "1 sentences without the tag 'set' left out",
            "1 sets without both classes left out",
            "1 sets without different scores left out",
            "1 sets of fewer than 2 sentences left out",
        )
        large = PBC(per="set", at_least=4).units(*sets(*self.ROWS))
        assert large.notes == ("2 sets of fewer than 4 sentences left out",)
        with pytest.raises(Undefined, match="no set has a correlation: 2 sets of fewer than 4 sentences left out"):
            PBC(per="set").value(large)

    def test_without_any_correlation_the_result_is_null_with_a_reason(self) -> None:
        suite, scores = sets(*self.ODD)
        (result,) = measure(suite, scores, ["PBC(per='set')"], by="kind")
        assert (result.value, result.n) == (None, 0)
        assert "sets without both classes" in result.reason

    def test_probabilities_and_logs(self) -> None:
        suite, scores = sets(*self.ROWS)
        result = [(float(sentence.label), scores[sentence.id]) for sentence in suite.sentences]
        expected = stats.pointbiserialr([a for a, _ in result], np.exp([b for _, b in result])).statistic
        assert value(PBC(scale="exp"), suite, scores) == pytest.approx(expected, abs=1e-12)
        low = Scores({key: score - 5000 for key, score in scores.values.items()}, "m")
        assert value(PBC(scale="exp"), suite, low) == pytest.approx(expected, abs=1e-9)
        within = PBC(per="set", scale="exp").units(suite, low)["pbc"]
        assert within[0] == pytest.approx(stats.pointbiserialr([1, 0, 0], np.exp([3, 1, 2])).statistic, abs=1e-9)

    @given(st.lists(st.tuples(NUMBERS, st.sampled_from("bu")), min_size=2, max_size=12), st.floats(0.1, 9), NUMBERS)
    def test_invariance_under_positive_affine_maps(self, rows, scale: float, shift: float) -> None:
        assume(len({cls for _, cls in rows}) == 2)
        assume(len({score for score, _ in rows}) > 1)
        suite, scores = sets(*(("a", cls, score) for score, cls in rows))
        moved = Scores({key: scale * score + shift for key, score in scores.values.items()}, "m")
        assert value(PBC(per="set"), suite, moved) == pytest.approx(value(PBC(per="set"), suite, scores), abs=1e-9)

    def test_models_are_compared_on_the_sets_that_have_a_correlation_for_both(self) -> None:
        suite, scores = sets(*self.ROWS, *((f"b{name[1]}", cls, score) for name, cls, score in self.ROWS))
        flat = {
            sentence.id: 0.0 if sentence.tags["set"] == "a1" else -scores[sentence.id] for sentence in suite.sentences
        }
        (result,) = compare(suite, [scores, Scores(flat, "flat")], measure=["PBC(per='set')"], bootstrap=Bootstrap(50))
        a1, a2 = self.expected()
        assert result.n == 3
        assert result.first_value == pytest.approx((a1 + 2 * a2) / 3)
        assert result.second_value == pytest.approx(-(a1 + 2 * a2) / 3)
        assert parse_signature(result.signature)["rows"] == "3 shared, of 4 and 3"

    def test_sets_are_resampled_and_grouped(self) -> None:
        more = [(f"b{name[1]}", cls, score) for name, cls, score in self.ROWS]
        suite, scores = sets(*self.ROWS, *more)
        percentile = Bootstrap(100, method="percentile")
        overall, *groups, macro = measure(suite, scores, ["PBC(per='set')"], by="kind", bootstrap=percentile)
        assert [(group.group, group.n) for group in groups] == [("kind=a", 2), ("kind=b", 2)]
        assert (overall.n, macro.n) == (4, 4)
        assert overall.value == pytest.approx(macro.value)
        low, high = sorted(self.expected())
        assert low <= overall.low < overall.high <= high
        with pytest.raises(
            SuiteError, match=r"the sets \(by set\) of suite 's' have no tag 'class'; they have kind, set"
        ):
            measure(suite, scores, ["PBC(per='set')"], by="class")

    @pytest.mark.parametrize("text", ["PBC(over='q2', per='set')", "PBC(over='median')", "PBC(at_least=5)"])
    def test_wrong_options(self, text: str) -> None:
        with pytest.raises(MeasureError, match="PBC"):
            load_measure(text)

    @pytest.mark.parametrize(
        "text", ["PBC(scale='x')", "PBC(per=1)", "PBC(per='set', at_least=1)", "PBC(per='set', at_least=2.5)"]
    )
    def test_other_wrong_options(self, text: str) -> None:
        with pytest.raises(MeasureError, match="PBC"):
            load_measure(text)

    def test_spellings(self) -> None:
        assert repr(PBC()) == "PBC()"
        assert repr(PBC(scale="exp")) == "PBC(scale='exp')"
        assert repr(PBC(per="set")) == "PBC(per='set', over='mean', at_least=2)"


@pytest.mark.parametrize("text", ["SetAccuracy(sets='')", "SetAccuracy(classes=1)", "SetAccuracy(against='all')"])
def test_wrong_options_of_set_accuracy(text: str) -> None:
    with pytest.raises(MeasureError, match="SetAccuracy"):
        load_measure(text)
