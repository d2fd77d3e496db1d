"""Table 1, Figures 1 and 4 and the counts in the text of Vázquez Martínez (2021)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import numpy as np

from acceptability.measures.correlation import pearson
from acceptability.measures.pairs import PairAccuracy
from acceptability.studies.adc_scores import COLA, LOGPROB, MLM, SLOR, SOURCE, Published
from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.types import Floats, Sentence

Values = Mapping[Key, Printed]
DELTAS = (0.5, 1.0, 5.0)
_FIGURE_1 = ("human", *COLA, *MLM, SLOR, LOGPROB)
_DRAWN = "from the gaps in the paper's published file of pairs, in the digits of a heat map; not read off the image"


def counts(data: Published, name: str) -> dict[str, int]:
    """Return how many contrasts a model meets under each criterion of Table 1."""
    judge = data.judges[name]
    found = {"BLiMP": PairAccuracy().units(data.suite, judge.scores)["correct"]}
    found |= {f"ADC {delta}": judge.adc(delta).units(data.suite, judge.scores)["met"] for delta in DELTAS}
    return {column: int(met.sum()) for column, met in found.items()}


def table_1(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the share of contrasts that each model meets under each criterion."""
    total = len(data.suite.contrasts)
    for name in data.judges:
        for column, met in counts(data, name).items():
            yield beside(values, ("Table 1", name, column), met / total, SOURCE, note=f"{met} of {total}")


def figure_1(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the correlations of people's and models' gaps, and the largest p among them.

    Ours come from ratings and scores of sentences. The figure is an image: where nobody has told what it prints, ours
    stand beside the correlations of the gaps that the paper published itself, in the two digits of its heat map.
    """
    gaps = data.gaps()
    for row, column in product(_FIGURE_1, repeat=2):
        theirs = Printed(f"{pearson(data.deltas[row], data.deltas[column]):.2g}", origin=_DRAWN)
        key = "Figure 1", row, column
        yield beside({key: theirs, **values}, key, pearson(gaps[row], gaps[column]), SOURCE)
    chances = {pair: chance(gaps[pair[0]], gaps[pair[1]]) for pair in combinations(_FIGURE_1, 2)}
    above = [f"{first} with {second} {p:.2g}" for (first, second), p in chances.items() if p >= 0.0001]
    note = f"not below .0001: {len(above)} of {len(chances)} ({'; '.join(above)})"
    yield beside(
        values, ("Figure 1, caption", "all correlations", "largest p"), max(chances.values()), SOURCE, note=note
    )


def chance(first: Floats, second: Floats) -> float:
    """Return the two-sided p of Pearson's r."""
    from scipy.stats import pearsonr

    return float(pearsonr(first, second).pvalue)


def figure_4(data: Published, values: Values) -> Iterator[Cell]:
    """Yield what the scatterplots show: where scores lie, and the lines through them, for pairs and for sentences."""
    gaps = data.gaps()
    rated = [each for each in data.suite.sentences if each.rating is not None]
    ratings = np.array([each.rating for each in rated], dtype=np.float64)
    for name in (*COLA, *MLM):
        scores = data.z(name)
        x = np.array([scores[each.id] for each in rated])
        found = _line("pairs", gaps[name], gaps["human"]) | _line("sentences", x, ratings) | _quartiles(x)
        if name in COLA:
            confidence = np.abs(list(data.judges[name].scores.values.values()))
            found["share of sentences with confidence above .9"] = float((confidence > 0.9).mean())
        for column, ours in found.items():
            yield beside(values, ("Figure 4", name, column), ours, SOURCE)


def _line(what: str, x: Floats, people: Floats) -> dict[str, float]:
    slope, intercept = np.polyfit(x, people, 1)
    return {
        f"{what}: r": pearson(x, people),
        f"{what}: slope": float(slope),
        f"{what}: intercept": float(intercept),
        f"{what}: n": len(x),
    }


def _quartiles(x: Floats) -> dict[str, float]:
    return {
        f"score z: {name}": float(np.quantile(x, q)) for name, q in (("25 %", 0.25), ("median", 0.5), ("75 %", 0.75))
    }


def text(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the numbers that stand in the running text, in its order; one of them is not in the published files."""
    ours = _sizes(data) | _shares(data) | _correlations(data)
    for table, row, column in values:
        if table == "Text":
            yield beside(values, (table, row, column), ours.get((row, column)), SOURCE)


def _sizes(data: Published) -> dict[tuple[str, str], float]:
    sentences = data.suite.sentences
    types = {source: _types(sentences, source) for source in ("LI", "Adger")}
    tokens = Counter(each.tags["type"] for each in sentences)
    by_id = data.suite.by_id
    pairs = {tuple(by_id[member].tags["type"] for member in (each.better, each.worse)) for each in data.suite.contrasts}
    return {
        ("abstract", "sentence types"): sum(map(len, types.values())),
        ("abstract", "sentences"): len(sentences),
        ("section 1", "minimal pairs"): len(data.suite.contrasts),
        ("section 4", "LI pairwise phenomena"): len([pair for pair in pairs if pair[0] in types["LI"]]),
        ("section 4", "LI sentence types"): len(types["LI"]),
        ("section 4", "Adger sentence types"): len(types["Adger"]),
        ("section 4", "sentences of a type"): Counter(tokens.values()).most_common(1)[0][0],
        ("section 6", "sentences"): len(sentences),
        ("appendix A", "minimal pairs with ch8.150.*.01"): len(
            [each for each in data.suite.contrasts if each.worse == "ch8.150.*.01"]
        ),
    }


def _types(sentences: tuple[Sentence, ...], source: str) -> set[str]:
    return {each.tags["type"] for each in sentences if each.tags["source"] == source}


def _shares(data: Published) -> dict[tuple[str, str], float]:
    found = {name: counts(data, name) for name in data.judges}
    per_cent = 100 / len(data.suite.contrasts)
    best = {column: max(found[name][column] for name in (*COLA, *MLM)) for column in ("BLiMP", "ADC 0.5")}
    cola, slor = found[COLA[2]], found[SLOR]
    shares: dict[tuple[str, str], float] = {}
    for column in ("BLiMP", "ADC 0.5"):
        shares["abstract", f"best BERT, {column}, %"] = best[column] * per_cent
        shares["abstract", f"{SLOR}, {column}, %"] = slor[column] * per_cent
        for name, count in ((COLA[2], cola[column]), (SLOR, slor[column])):
            shares["section 1", f"{name}, {column}"] = count
            shares["section 1", f"{name}, {column}, %"] = count * per_cent
    return shares


def _correlations(data: Published) -> dict[tuple[str, str], float]:
    gaps = data.gaps()
    with_people = {name: pearson(gaps["human"], gaps[name]) for name in (*COLA, *MLM, SLOR)}
    found = {("section 8", f"r of {name} with people"): with_people[name] for name in MLM}
    return found | {
        ("section 8", f"r of {name} above that of SLOR"): with_people[name] - with_people[SLOR] for name in COLA
    }
