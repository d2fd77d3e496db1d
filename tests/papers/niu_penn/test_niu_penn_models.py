"""Niu and Penn (2020): the rows of a user's own models, each against an independent computation."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from acceptability import load_suite, score
from acceptability.cli import app
from acceptability.errors import CorpusError, MissingExtra, ModelError, SpecError
from acceptability.papers import study
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.niu_penn import compute_gpt2_cells, user_models
from acceptability.papers.niu_penn.model_rows import WORDFREQ_SLOR, choose_slor, describe_training_text
from acceptability.papers.niu_penn.pbc_tables import (
    find_microgroups,
    group_similar_sentences,
    has_both_labels,
    load_labelled_cola,
    select_minimal_structures,
)
from acceptability.papers.niu_penn.sense import PEREIRA_KEY, compute_colorless_cell, load_permutations
from acceptability.papers.niu_penn.user_models import (
    LenientModel,
    NamedCorpus,
    StudyModel,
    StudyTexts,
    add_training_notes,
    compute_table_1,
    make_lenient,
    read_study_texts,
    rescore_model,
)
from acceptability.train import train
from acceptability.train.corpus import open_corpus
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.perplexity import perplexity, pseudo_perplexity
from acceptability.types import Sentence, Suite
from published import compute_published_cells
from tiny import SENTENCES, TEXTS, arpa_text

TREE = """\
# text = The old wolves slept.
1	The	the	DET	DT	_	3	det	_	_
2	old	old	ADJ	JJ	_	3	amod	_	_
3	wolves	wolf	NOUN	NNS	_	5	nsubj	_	_
4	were	be	AUX	VBD	VerbForm=Fin	5	aux	_	_
5	sleeping	sleep	VERB	VBG	VerbForm=Part	0	root	_	_
6	.	.	PUNCT	.	_	5	punct	_	_

"""


def by_key(cells: list[Cell]) -> dict[CellKey, Cell]:
    cells_by_key = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(cells_by_key) == len(cells)
    return cells_by_key


@cache
def of_model(name: str) -> dict[CellKey, Cell]:
    return by_key(
        add_training_notes(
            name, rescore_model(StudyModel(name), StudyTexts(), find_microgroups(), read_published_values("niu_penn"))
        )
    )


def pbc(scores: np.ndarray, sentences: list[Sentence] | tuple[Sentence, ...]) -> float:
    return float(stats.pointbiserialr([sentence.label for sentence in sentences], scores).statistic)


@pytest.fixture
def bigram(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"ngram:{bigram_file(tmp_path_factory.getbasetemp())}"


@cache
def bigram_file(folder: Path) -> Path:
    """A bigram on the sentences themselves, in both cases: one that knows no word of a sentence will not score it."""
    texts = [sentence.text for sentence in (*load_labelled_cola().sentences, *load_suite("li_adger").sentences)]
    path = folder / "niu-penn.arpa"
    path.write_text(arpa_text([*texts, *(text.lower() for text in texts)]), encoding="utf-8")
    return path


def test_a_model_joins_table_2(bigram: str) -> None:
    cola = load_labelled_cola()
    assert len(cola.sentences) == 9594
    logs = score(cola, bigram, "lp").of(sentence.id for sentence in cola.sentences)
    cells_by_key = of_model(bigram)
    assert cells_by_key["Table 2", f"{bigram}, Raw", "LOG"].ours == pytest.approx(pbc(logs, cola.sentences), abs=1e-9)
    assert cells_by_key["Table 2", f"{bigram}, Raw", "EXP"].ours == pytest.approx(
        pbc(np.exp(logs), cola.sentences), abs=1e-9
    )
    norm = score(cola, bigram, "exp(mean_lp)").of(sentence.id for sentence in cola.sentences)
    assert cells_by_key["Table 2", f"{bigram}, Norm", "EXP"].ours == pytest.approx(pbc(norm, cola.sentences), abs=1e-9)
    assert {cell.source for cell in cells_by_key.values()} == {f"re-scored with {bigram}"}


def test_a_model_joins_table_5(bigram: str) -> None:
    cola = load_labelled_cola()
    small = Suite("lower", tuple(replace(sentence, text=sentence.text.lower()) for sentence in cola.sentences))
    cells_by_key = of_model(bigram)
    logs = score(small, bigram, "lp").of(sentence.id for sentence in small.sentences)
    assert cells_by_key["Table 5", f"{bigram}, Raw", "LOG lower"].ours == pytest.approx(
        pbc(logs, cola.sentences), abs=1e-9
    )
    for norm in ("Raw", "Norm"):
        for scale in ("LOG", "EXP"):
            with_case = cells_by_key["Table 5", f"{bigram}, {norm}", f"{scale} with case"].ours
            assert with_case == cells_by_key["Table 2", f"{bigram}, {norm}", scale].ours


@pytest.mark.slow
def test_a_model_joins_table_2_with_slor(bigram: str) -> None:
    pytest.importorskip("wordfreq", reason="SLOR is taken against the unigrams of wordfreq")
    cola = load_labelled_cola()
    slor = score(cola, bigram, "slor(unigrams='wordfreq:en')").of(sentence.id for sentence in cola.sentences)
    cells_by_key = of_model(bigram)
    assert cells_by_key["Table 2", f"{bigram}, SLOR", "LOG"].ours == pytest.approx(pbc(slor, cola.sentences), abs=1e-9)
    assert cells_by_key["Table 2", f"{bigram}, SLOR", "EXP"].ours == pytest.approx(
        pbc(np.exp(slor), cola.sentences), abs=1e-9
    )


def test_a_model_joins_table_3(bigram: str) -> None:
    suite = load_suite("li_adger")
    scores = score(suite, bigram, "lp")
    by_set = [
        pbc(scores.of(sentence.id for sentence in part), part) for part in select_minimal_structures(suite).values()
    ]
    cell = of_model(bigram)["Table 3", f"{bigram}, Raw", "LOG"]
    assert cell.ours == pytest.approx(np.median(by_set), abs=1e-9)
    assert cell.note == "median of 57 sets"


@pytest.mark.usefixtures("data")
def test_undefined_numbers_have_a_reason() -> None:
    """A uniform model gives every token the same, so that nothing is left per token."""
    cells_by_key = of_model("uniform")
    for table in ("Table 2", "Table 3"):
        cell = cells_by_key[table, "uniform, Norm", "LOG"]
        assert cell.ours is None
        assert "same value in every row" in cell.note


@pytest.mark.usefixtures("data")
def test_without_unigrams_slor_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(text: str) -> None:
        raise MissingExtra("wordfreq:en", "wordfreq", "'acceptability[ngram]'")

    monkeypatch.setattr(user_models, "as_reduction", absent)
    cells_by_key = by_key(rescore_model(StudyModel("uniform"), StudyTexts(), [], read_published_values("niu_penn")))
    cell = cells_by_key["Table 2", "uniform, SLOR", "LOG"]
    assert cell.ours is None
    assert "acceptability[ngram]" in cell.note


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trigram in lower case, trained here."""
    folder = tmp_path_factory.mktemp("niu-penn-trained")
    (folder / "small.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    train(NGramRecipe(order=3, vocabulary=0, lower=True), [folder / "small.txt"], folder / "model")
    return f"ngram:{folder / 'model'}"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "held-out.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    return path


def in_table_1(model: str, *paths: Path) -> list[Cell]:
    return compute_table_1(model, read_study_texts(paths).plain_corpora, None)


def test_a_model_joins_table_1(trained: str, text: Path) -> None:
    (cell,) = in_table_1(trained, text)
    result = perplexity(trained, open_corpus([text]), words="split")
    assert cell.ours == result.perplexity
    assert (cell.paper, cell.agrees, cell.source) == (None, None, f"re-scored with {trained}")
    assert cell.column == "held-out.txt"
    assert "on held-out.txt, another text than the BNC and WikiText-103" in cell.note
    assert "words='split'" in cell.note


def test_each_text_has_a_column_of_its_own(trained: str, text: Path, tmp_path: Path) -> None:
    other = tmp_path / "mix" / "test"
    other.mkdir(parents=True)
    (other / "a.txt").write_text("The dog sleeps.\n")
    (other / "b.txt").write_text("Who did the cats chase?\n")
    first, second = in_table_1(trained, text, other)
    assert (first.column, second.column) == ("held-out.txt", "mix/test")
    assert second.ours == perplexity(trained, open_corpus([other]), words="split").perplexity
    assert first.ours != second.ours
    assert "on mix/test (a.txt, b.txt), another text" in second.note


def test_words_of_table_1_are_the_same_for_all_models(trained: str, arpa: Path, text: Path) -> None:
    """One has words by spaces, the other by the rule split: both report per word by split."""
    notes = [in_table_1(model, text)[0].note for model in (trained, f"ngram:{arpa}")]
    assert len({note.partition(" words by the rule 'split'")[0] for note in notes}) == 1


def test_a_model_without_perplexity_says_why(text: Path, masked_dir: Path, classifier_dir: Path) -> None:
    for model in (f"masked:{masked_dir}", f"classifier:{classifier_dir}", "uniform"):
        cell = in_table_1(model, text)[0]
        assert cell.ours is None
        assert "masked model sees both sides of each word" in cell.note


def test_a_masked_model_has_a_pseudo_perplexity_in_a_column_of_its_own(text: Path, masked_dir: Path) -> None:
    model = f"masked:{masked_dir}(variant='word_l2r')"
    nothing, pseudo = in_table_1(model, text)
    assert (nothing.column, nothing.ours) == ("held-out.txt", None)
    assert pseudo.column == "pseudo-perplexity, held-out.txt"
    assert pseudo.ours == pseudo_perplexity(model, open_corpus([text]), words="split").pseudo_perplexity
    assert "compares with those of masked models of the same variant only" in pseudo.note
    assert "variant='word_l2r'" in pseudo.note


def test_a_text_that_a_model_cannot_score_is_reported(text: Path, causal_dir: Path, masked_dir: Path) -> None:
    text.write_text("The cats sleep.\n" + "the dog " * 100, encoding="utf-8")
    for model in (f"causal:{causal_dir}", f"masked:{masked_dir}"):
        cell = in_table_1(model, text)[-1]
        assert cell.ours is None
        assert "cannot score" in cell.note


def test_without_text_table_1_says_what_to_give() -> None:
    (cell,) = in_table_1("uniform")
    assert (cell.column, cell.ours, "--corpus FILE" in cell.note) == ("text of --corpus", None, True)


def test_slor_uses_the_unigrams_of_the_model(trained: str, arpa: Path) -> None:
    spec, note = choose_slor(trained)
    assert spec == f"slor(unigrams='{trained.removeprefix('ngram:')}/unigrams.tsv')"
    assert "the model's own unigrams" in note
    for other in (f"ngram:{arpa}", "uniform", "causal:gpt2"):
        assert choose_slor(other) == (
            WORDFREQ_SLOR,
            "unigrams of wordfreq, where the paper counts those of its training corpus",
        )


@pytest.mark.usefixtures("data")
def test_a_trained_model_joins_table_2_with_its_own_slor(trained: str) -> None:
    cola, model = load_labelled_cola(), make_lenient(trained)
    slor = score(cola, model, choose_slor(trained)[0]).of(sentence.id for sentence in cola.sentences)
    cell = of_model(trained)["Table 2", f"{trained}, SLOR", "LOG"]
    assert cell.ours == pytest.approx(pbc(slor, cola.sentences), abs=1e-9)
    assert "the model's own unigrams, unigrams.tsv in its folder" in cell.note


def test_what_a_model_was_trained_on(trained: str, arpa: Path, tmp_path: Path) -> None:
    metadata = json.loads((Path(trained.removeprefix("ngram:")) / "recipe.json").read_text())
    words = sum(len(text.split()) for text in SENTENCES)
    assert describe_training_text(trained) == (
        f"trained on {words} words of small.txt (sha256 {metadata['corpus'][:12]}), in lower case"
    )
    assert describe_training_text(f"{trained}(eos=True)") == describe_training_text(trained)
    assert [describe_training_text(f"ngram:{arpa}"), describe_training_text("uniform")] == ["", ""]
    for content, problem in (("{", "cannot read"), ("{}", "lacks one of"), ("[]", "lacks one of")):
        (tmp_path / "recipe.json").write_text(content)
        with pytest.raises(ModelError, match=problem):
            describe_training_text(f"ngram:{tmp_path}")


@pytest.mark.usefixtures("data")
def test_every_row_of_a_trained_model_names_its_text(trained: str) -> None:
    assert all(cell.note.endswith(describe_training_text(trained)) for cell in of_model(trained).values())
    assert {cell.table for cell in of_model(trained).values()} == {"Section 5", *(f"Table {n}" for n in range(1, 7))}


def test_a_sentence_of_unknown_words_counts_and_is_kept_apart(trained: str) -> None:
    suite = Suite("strange", (Sentence("a", "Anson demonized"), Sentence("b", "The cats")))
    model = make_lenient(trained)
    assert isinstance(model, LenientModel)
    scores = score(suite, model, "lp")
    assert scores["a"] < 0
    with pytest.raises(ModelError, match="Anson demonized"):
        score(suite, trained, "lp")
    known = Suite("known", suite.sentences[1:])
    assert score(known, trained, "lp")["b"] == scores["b"]


def test_groups_are_runs_of_similar_neighbours() -> None:
    texts = ["Ann saw him.", "Ann saw he.", "Ann saw her there.", "It rains.", "Ann saw him.", "Ann saw him."]
    sources = ["a", "a", "a", "a", "a", "b"]
    rows = [
        Sentence(str(index), text, label=index % 2, tags={"source": source})
        for index, (text, source) in enumerate(zip(texts, sources, strict=True))
    ]
    groups = group_similar_sentences(rows)
    # "Ann saw he." and "Ann saw her there." share Ann, saw and the full stop: 2 * 3 of 4 + 5 words.
    assert [[group_.id for group_ in group] for group in groups] == [["0", "1", "2"], ["3"], ["4"], ["5"]]
    assert [has_both_labels(group) for group in groups] == [True, False, False, False]
    assert [len(group) for group in group_similar_sentences(rows, threshold=0.7)] == [2, 1, 1, 1, 1]


@pytest.mark.usefixtures("data")
def test_how_many_groups_there_are() -> None:
    sizes = [len(group) for group in find_microgroups()]
    both = [len(group) for group in find_microgroups() if has_both_labels(group)]
    assert (sum(sizes), len(sizes), len(both), sum(size > 4 for size in both)) == (2010, 1208, 254, 33)
    assert [sizes.count(size) for size in range(1, 5)] == [732, 308, 92, 37]
    cells_by_key = by_key(compute_published_cells("niu-penn"))
    paper = cells_by_key["Section 5.1", "microgroups", "groups, with those of one sentence"]
    assert (paper.paper, paper.ours, paper.agrees, paper.source) == ("1803", 1208, None, "our groups")
    small = cells_by_key["Section 5.1", "microgroups", "of those of two or more, of size 2 to 4 (%)"]
    assert (small.paper, small.ours) == ("77%", pytest.approx(100 * 437 / 476))
    assert cells_by_key["Section 5.1", "microgroups", "groups above 4 with both classes"].ours == 33


def test_a_model_joins_table_4(bigram: str) -> None:
    scores = score(load_labelled_cola(), bigram, "mean_lp")
    groups = [group for group in find_microgroups() if {group_.label for group_ in group} == {0, 1}]
    for name, chosen in (("of 2 or more", groups), ("above 4", [group for group in groups if len(group) > 4])):
        values = [scores.of(group_.id for group_ in group) for group in chosen]
        by_group = [pbc(scores, group) for scores, group in zip(values, chosen, strict=True) if np.ptp(scores) > 0]
        expected = {"median": np.median(by_group), "mean": np.mean(by_group)}
        expected |= {"lower breakpoint": np.percentile(by_group, 25), "upper breakpoint": np.percentile(by_group, 75)}
        for statistic, value in expected.items():
            cell = of_model(bigram)["Table 4", f"{bigram}, Norm LOG", f"our groups {name}, {statistic}"]
            assert cell.ours == pytest.approx(value, abs=1e-9)
            assert f"{statistic} of {len(by_group)} sets" in cell.note
            assert "our groups, not the paper's" in cell.note


def test_a_model_joins_table_6_with_permutations(bigram: str) -> None:
    suite = load_permutations()
    assert [sentence.label for sentence in suite.sentences].count(1) == 28
    assert len(suite.sentences) == 116
    column = "permutations of colourless green ideas sleep furiously, grammatical against not"
    logs = score(suite, make_lenient(bigram), "lp").of(sentence.id for sentence in suite.sentences)
    cells_by_key = of_model(bigram)
    raw = cells_by_key["Table 6", f"{bigram}, Raw", column]
    assert raw.ours == pytest.approx(pbc(logs, suite.sentences), abs=1e-9)
    needs = cells_by_key["Table 6", f"{bigram}, Raw", "our sense against our nonsense"]
    assert (needs.ours, ".conllu" in needs.note) == (None, True)
    # All have the same words, so that SLOR only shifts and stretches them.
    if slor := cells_by_key.get(("Table 6", f"{bigram}, SLOR", column)):
        assert slor.ours == pytest.approx(raw.ours, abs=1e-6)


def test_the_colorless_ratio_has_the_printed_number_beside_it(trained: str) -> None:
    values = read_published_values("niu_penn")
    cell = compute_colorless_cell("uniform", values)
    assert (cell.paper, cell.ours, cell.agrees) == ("200000", 1.0, None)
    assert (cell.table, cell.row, cell.column) == ("Section 5", "uniform", PEREIRA_KEY[2])
    cell = compute_colorless_cell(trained, values)
    assert isinstance(cell.ours, float)
    assert "the model does not know colorless" in cell.note


def test_text_and_treebanks_are_distinguished(tmp_path: Path, text: Path) -> None:
    bank = tmp_path / "tiny.conllu"
    bank.write_text(TREE, encoding="utf-8")
    texts = read_study_texts([text, bank])
    assert texts.plain_corpora == (NamedCorpus("held-out.txt", open_corpus([text])),)
    assert texts.sense is not None
    assert [sentence.text for sentence in texts.sense.sentences] == [
        "the hungry vowel was arrested",
        "the old wolves were sleeping",
    ]
    assert read_study_texts([]) == StudyTexts()
    assert read_study_texts([bank]).plain_corpora == ()
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "a.txt").write_text("The cats sleep.")
    (tmp_path / "both" / "b.conllu").write_text(TREE, encoding="utf-8")
    both = read_study_texts([tmp_path / "both"])
    assert [path.name for named in both.plain_corpora for path in named.corpus.files] == ["a.txt"]
    assert both.sense == read_study_texts([bank]).sense
    with pytest.raises(CorpusError, match="given twice"):
        read_study_texts([text, text])


@pytest.mark.usefixtures("data")
def test_the_whole_study_of_a_trained_model(trained: str, tmp_path: Path, text: Path) -> None:
    (tmp_path / "tiny.conllu").write_text(TREE, encoding="utf-8")
    arguments = ["study", "niu-penn", "--model", trained, "--corpus", str(text)]
    done = CliRunner().invoke(app, [*arguments, "--corpus", str(tmp_path / "tiny.conllu"), "--json"])
    assert done.exit_code == 0, done.output
    rows_by_key = {(row["table"], row["row"], row["column"]): row for row in json.loads(done.stdout)}
    assert len(rows_by_key) == len(json.loads(done.stdout))
    assert rows_by_key["Table 1", trained, "held-out.txt"]["ours"] > 1
    sense = rows_by_key["Table 6", f"{trained}, Raw", "our sense against our nonsense"]
    assert abs(sense["ours"]) == pytest.approx(1)
    assert "1 of our 27 nonsense sentences" in sense["note"]


def test_a_study_without_text_refuses_it(text: Path) -> None:
    with pytest.raises(SpecError, match="'adc' has no option 'corpus'"):
        study("adc", ["uniform"], corpus=[text])
    with pytest.raises(SpecError, match="give a --model too"):
        study("niu-penn", corpus=[text])


def test_a_described_study_refuses_text(text: Path, tmp_path: Path) -> None:
    described = tmp_path / "mine.toml"
    described.write_text('suites = ["starter"]\nmodels = ["uniform"]\n')
    done = CliRunner().invoke(app, ["study", str(described), "--corpus", str(text)])
    assert done.exit_code == 2
    assert "No such option: --corpus" in done.output


def test_gpt2_is_not_available_where_it_is_not_given() -> None:
    filled_cells = compute_gpt2_cells(read_published_values("niu_penn"), ["uniform"], [])
    assert {key[0] for key in filled_cells} == {f"Table {n}" for n in range(1, 7)}
    # Tables 1 to 6 have 4, 12, 8, 48, 16 and 4 numbers of GPT-2 and GPT-2 XL.
    assert len(filled_cells) == 92
    assert {(cell.ours, cell.source, cell.agrees) for cell in filled_cells.values()} == {(None, "not available", None)}
    assert "--model causal:gpt2-xl" in filled_cells["Table 5", "GPT-2 XL, Raw", "LOG lower"].note


def test_gpt2_fills_the_rows_of_the_paper_where_the_sentences_are_the_same() -> None:
    model = "causal:somewhere/gpt2(bos=None)"
    numbers = {
        ("Table 2", f"{model}, Raw", "LOG"): 0.1839,
        ("Table 3", f"{model}, Norm", "EXP"): 0.5,
        ("Table 5", f"{model}, Raw", "LOG lower"): 0.1484,
    }
    cells = [Cell(*key, None, ours, f"re-scored with {model}", None) for key, ours in numbers.items()]
    filled_cells = compute_gpt2_cells(read_published_values("niu_penn"), [model], cells)
    filled = {key: (cell.ours, cell.agrees) for key, cell in filled_cells.items() if cell.ours is not None}
    assert filled == {
        ("Table 2", "GPT-2 models, Raw", "GPT-2 LOG"): (0.1839, True),
        ("Table 3", "GPT-2 models, Norm", "GPT-2 EXP"): (0.5, False),
        # The paper's rows of GPT-2 and GPT-2 XL are swapped in Table 5.
        ("Table 5", "GPT-2, Raw", "LOG lower"): (0.1484, False),
    }
    assert filled_cells["Table 2", "GPT-2 models, Raw", "GPT-2 XL LOG"].source == "not available"
