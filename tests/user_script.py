"""A user's script that uses every public name, on which ``mypy --strict`` passes.

It is checked by ``test_typing.py``, and not run.
"""

from __future__ import annotations

from pathlib import Path

import acceptability as ac


def weigh(sentence: str) -> float:
    return -float(len(sentence))


def use_suites(folder: Path) -> ac.Suite:
    starter: ac.Suite = ac.load_suite("starter")
    part = starter.filter(phenomenon="island_effects").sample(5, seed=1)
    texts: list[str] = [sentence.text for sentence in part]
    own = ac.Suite("own", (ac.Sentence("a", texts[0]), ac.Sentence("b", texts[1])), (ac.Contrast("a", "b"),))
    print(len(own), own["a"].label, "b" in own, ac.Suite.from_frame(own.to_frame(), good="g", bad="b"))
    for table in (ac.list_suites("en"), ac.list_models(), ac.list_measures(), ac.list_reductions()):
        assert isinstance(table, ac.Table)
        name: str = table[0]["name"]
        print(name, table.to_frame())
    return own


def use_models() -> None:
    model = ac.load_model("trigram")
    mine = ac.from_function(weigh, name="mine", version="1")
    network: object = None
    loaded = ac.from_transformers(network, network, kind="causal", bos="<s>")
    print(model.signature, mine.signature, loaded.encode([ac.Query("Cats sleep.")]))


def use_scores(suite: ac.Suite) -> None:
    model = ac.load_model("trigram")
    scores: ac.Scores = ac.score(suite, model, ac.slor(unigrams="wordfreq:en"))
    listed = ac.score(["Cats sleep.", "Cats sleeps."], "trigram", reduce="mean_lp", context="Look!")
    total: float = scores["a"] + sum(listed[name] for name in listed)
    judged: ac.Judgements = ac.judge("Cats sleep.", "Cats sleeps.", model="trigram", context="Look!")
    best: ac.Judgement | None = judged.best
    output: ac.TokenScores | ac.LabelScores = judged[0].output
    rows: ac.Table = ac.tokens("Cats sleep.", "trigram")
    ac.words(["Cats sleep."], model, context=["Look!"]).to_frame()
    completions: ac.Completions = ac.complete("The keys to the cabinet", "trigram", candidates=["are", "is"], top=3)
    annotated: ac.AnnotatedWords = ac.annotate(Path("words.tok"), model, entropy=True, spillover=1)
    print(completions.masses["new word"], annotated.notes, isinstance(output, ac.TokenPredictions))
    print(total, best, output, rows, ac.region_scores(suite, model))
    for reduction in (
        ac.lp(),
        ac.mean_lp(),
        ac.pen_lp(),
        ac.slln_lp(0.5),
        ac.exp(ac.lp()),
        ac.log_odds(),
        ac.p_acceptable(),
    ):
        print(reduction.signature)
    for by_unigrams in (ac.norm_lp_sub, ac.norm_lp_div, ac.word_lp_min, ac.word_lp_mean, ac.morcela):
        ac.score(suite, "trigram", by_unigrams(unigrams="wordfreq:en"))
    print(ac.word_lp_mean_q1, ac.word_lp_mean_q2, ac.signed_confidence(temperature=2.0))


def use_measures(suite: ac.Suite) -> None:
    results: ac.Results = ac.evaluate(suite, "trigram", measure=ac.PairAccuracy(ties=0.5), by="kind", resamples=200)
    ac.evaluate(["starter", suite], ["trigram", ac.load_model("uniform")], reduce=ac.mean_lp(), measure=["ADC"])
    ac.evaluate(suite.to_frame(), "trigram", good="g", bad="b", bootstrap=ac.Bootstrap(resamples=100))
    best: ac.Result = results.best(measure="PairAccuracy")
    value: float | None = best.value
    results.figure("summary").save("figure.svg")
    written: Path = results.report("report.html")
    print(value, written, results.to_latex(), results.pivot(values="n"), results[:2].to_frame())
    measured = ac.measure(
        suite, ac.score(suite, "trigram"), [ac.AUC(), ac.MCC(threshold=0.0), ac.Accuracy(threshold=0.0)]
    )
    comparisons: ac.Comparisons = ac.compare(suite, "trigram", ac.load_model("uniform"), measure="PairAccuracy")
    difference: ac.Comparison = comparisons[0]
    correlations: ac.Correlations = ac.correlate(suite, "trigram", kind="spearman")
    print(measured, difference.difference, correlations[0].r)
    for unrated in (ac.AbsolutePair(), ac.GradientPair(), ac.PairCorrelation(), ac.UnpairedAUC(), ac.SetAccuracy()):
        print(unrated.needs)
    for rated in (ac.ADC(), ac.ADCArea(), ac.DeltaCorrelation(), ac.PBC(), ac.Pearson(), ac.Spearman(), ac.Kendall()):
        units: ac.Units = rated.units(suite, ac.score(suite, "trigram"))
        print(rated.value(units), ac.Predictions().needs)
    print(ac.adc_curve)


def use_the_rest(suite: ac.Suite, folder: Path) -> None:
    try:
        ac.train("ngram", folder / "model", corpus=folder / "text.txt", options={"order": 3})
    except ac.AcceptabilityError as error:
        print(error)
    for cell in ac.study("adc", table="Table 1"):
        print(cell)
    print(ac.run_study(folder / "study.toml").best())
    print(ac.link(suite, "trigram", "wordfreq:en", by="item")["trigram"].reduction.beta)
    print(ac.link(suite, "trigram", fit="slln_lp")["trigram"].reduction.alpha)
    print(ac.ratings(folder / "responses.csv", "likert", columns={"participant": "id"})["ratings"].to_frame())
    again: list[ac.Reproduction] = ac.reproduce(ac.evaluate(suite, "trigram")[0].signature)
    print(again, ac.equivalence, ac.power, ac.regress)
