"""Intermediate training: files of three kinds, their errors, and classifiers that start from the trained encoder."""

from __future__ import annotations

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from acceptability import Sentence, Suite
from acceptability.cli import app
from acceptability.errors import TrainError
from acceptability.train.classifiers import train_classifier
from acceptability.train.classifiers.finetuning import FineTuningRecipe
from acceptability.train.classifiers.finetuning_task import load_pretrained
from acceptability.train.classifiers.intermediate import (
    SentencePair,
    TaggedSentence,
    read_intermediate_task,
    tokenize_pair,
    tokenize_tagged_words,
    train_and_save_encoder,
)

QUICK = FineTuningRecipe(learning_rate=3e-3, epochs=1, batch_size=8, dropout=0.0, evaluations_per_epoch=1, device="cpu")
TREE = "\n".join(
    (
        "# text = The cats sleep",
        "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_",
        "2-3\tcats'\t_\t_\t_\t_\t_\t_\t_\t_",
        "2\tcats\tcat\tNOUN\tNNS\t_\t3\tnsubj\t_\t_",
        "3\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_",
        "3.1\tnothing\t_\t_\t_\t_\t_\t_\t_\t_",
        "",
        "1\tdogs\tdog\tNOUN\tNNS\t_\t0\troot\t_\t_",
        "2\tx\tx\t_\t_\t_\t1\tdep\t_\t_",
        "",
    )
)
MNLI = "index\tgold_label\tsentence1\tsentence2\n" + "".join(
    f"{n}\t{label}\tthe {noun} sleep.\tthe {noun} {verb}.\n"
    for n, (noun, verb, label) in enumerate(
        [("cats", "sleep", "entailment"), ("dogs", "rain", "contradiction"), ("cats", "think", "neutral")] * 8
    )
)


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def sentences() -> Suite:
    pairs = [(noun, verb) for noun in ("cat", "dog", "cats", "rain") for verb in ("sleep", "think", "rain")]
    made = [(f"the {noun} {verb}.", 1) for noun, verb in pairs] + [(f"{noun} the {verb}.", 0) for noun, verb in pairs]
    return Suite("made", tuple(Sentence(f"made-{n}", text, label) for n, (text, label) in enumerate(made)))


def test_a_treebank_has_words_without_ranges_and_empty_nodes(tmp_path: Path) -> None:
    file = write(tmp_path, "a.conllu", TREE)
    task = read_intermediate_task(file)
    assert task.examples == (
        TaggedSentence(("The", "cats", "sleep"), ("DET", "NOUN", "VERB")),
        TaggedSentence(("dogs", "x"), ("NOUN", "")),
    )
    assert task.labels == ("DET", "NOUN", "VERB")
    assert read_intermediate_task(file, "xpos").labels == ("DT", "NNS", "VBP")
    packed = tmp_path / "b.conllu.xz"
    packed.write_bytes(lzma.compress(TREE.encode()))
    assert read_intermediate_task(packed).examples == task.examples


def test_pairs_in_the_columns_of_mnli_and_in_ours(tmp_path: Path) -> None:
    task = read_intermediate_task(write(tmp_path, "a.tsv", MNLI + "99\t-\ta b\tc d\n"))
    assert (len(task.examples), task.unlabelled_count) == (24, 1)
    assert task.examples[0] == SentencePair("the cats sleep.", "the cats sleep.", "entailment")
    rows = [
        {"premise": 'It\'s "on".', "hypothesis": "Off.", "label": label} for label in ("contradiction", "neutral", 0)
    ]
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert read_intermediate_task(packed).labels == ("contradiction", "entailment", "neutral")


def test_supertags_with_and_without_parts_of_speech(tmp_path: Path) -> None:
    task = read_intermediate_task(write(tmp_path, "ccg.txt", "The|DT|NP/N cats|NNS|N sleep|VBP|S\\NP\n||SYM|N x|N\n"))
    assert task.examples[0] == TaggedSentence(("The", "cats", "sleep"), ("NP/N", "N", "S\\NP"))
    assert task.examples[1] == TaggedSentence(("|", "x"), ("N", "N"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.tsv", "premise\tlabel\nx\tneutral\n", "a.tsv, line 2: there is no hypothesis or sentence2"),
        ("a.tsv", "premise\thypothesis\tlabel\nx\ty\n", "a.tsv, line 2: 2 columns; the header has 3"),
        ("a.tsv", "premise\thypothesis\tlabel\nx\ty\tperhaps\n", "a.tsv, line 2: label is 'perhaps'"),
        ("a.tsv", "premise\thypothesis\tlabel\n\ty\tneutral\n", "a.tsv, line 2: premise or hypothesis is empty"),
        ("a.tsv", "", "a.tsv has 0 labelled pairs"),
        ("a.tsv", "premise\thypothesis\tlabel\nx\ty\tneutral\n", "with 1 labels: at least two are needed"),
        ("a.jsonl", "{}\n[1]\n", "a.jsonl, line 1: there is no premise"),
        ("a.jsonl", "[1]\n", "a.jsonl, line 1: expected an object"),
        ("a.jsonl", "no\n", "a.jsonl, line 1: not JSON"),
        ("a.conllu", "1\tThe\tDET\n", "a.conllu, line 1: 3 columns; CoNLL-U has 10"),
        ("a.conllu", "", "a.conllu has 0 sentences"),
        ("a.txt", "The cats sleep\n", "a.txt, line 1: 'The' is no word with a supertag"),
        ("a.txt", "The|N cats|\n", "a.txt, line 1: 'cats|' is no word"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(TrainError) as error:
        read_intermediate_task(write(tmp_path, name, text))
    assert problem in str(error.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="cannot read"):
        read_intermediate_task(tmp_path / "none.tsv")


def test_the_label_of_a_word_is_at_its_first_token(masked_dir: Path) -> None:
    start = load_pretrained(replace(QUICK, model=str(masked_dir)))
    each = TaggedSentence(("the", "unbelievable", "cats"), ("D", "A", ""))
    _, labels = tokenize_tagged_words(each, {"A": 0, "D": 1}, start.tokenizer)
    spans = start.tokenizer(" ".join(each.words), return_offsets_mapping=True)["offset_mapping"]
    labelled_spans = {label: span for label, span in zip(labels, spans, strict=True) if label >= 0}
    assert set(labelled_spans) == {0, 1}
    assert " ".join(each.words)[labelled_spans[1][0] : labelled_spans[1][1]].strip().startswith("t")
    assert labelled_spans[0][0] in (3, 4)
    whole = tokenize_pair(SentencePair("the cats", "the dogs", "neutral"), start.tokenizer)
    assert whole[: len(start.tokenizer("the cats")["input_ids"])] == start.tokenizer("the cats")["input_ids"]


@pytest.mark.parametrize(
    ("name", "text"), [("a.tsv", MNLI), ("a.conllu", TREE * 6), ("ccg.txt", "a|N cats|NP sleep|S\n" * 20)]
)
def test_a_saved_encoder_can_be_fine_tuned(masked_dir: Path, tmp_path: Path, name: str, text: str) -> None:
    recipe = replace(QUICK, model=str(masked_dir), intermediate=str(write(tmp_path, name, text)))
    plain = load_pretrained(recipe)
    before = {key: each.clone() for key, each in plain.net.named_parameters()}
    facts = train_and_save_encoder(recipe, tmp_path / "encoder", torch.device("cpu"), lambda _: None)
    again = load_pretrained(replace(QUICK, model=str(tmp_path / "encoder")))
    body = [key for key in before if key not in plain.new_weights]
    changed = [key for key, each in again.net.named_parameters() if key in body and not torch.equal(each, before[key])]
    assert len(changed) > len(body) / 2
    assert again.new_weights == plain.new_weights
    assert 0 <= float(str(facts["accuracy in the intermediate task"])) <= 1
    assert train_and_save_encoder(recipe, tmp_path / "encoder", torch.device("cpu"), lambda _: None) == facts


def test_the_model_card_lists_the_intermediate_task(masked_dir: Path, tmp_path: Path) -> None:
    file = write(tmp_path, "a.conllu", TREE * 6)
    recipe = replace(QUICK, model=str(masked_dir), intermediate=str(file))
    metadata: dict[str, Any] = train_classifier(recipe, [sentences()], tmp_path / "after")
    plain = train_classifier(replace(QUICK, model=str(masked_dir)), [sentences()], tmp_path / "plain")
    assert metadata["facts"]["intermediate task"] == "words with tags (upos)"
    assert metadata["facts"]["file of the intermediate task"].startswith("a.conllu#")
    assert metadata["facts"]["labels of the intermediate task"] == 3
    assert "intermediate task" not in plain["facts"]
    assert (tmp_path / "after/model.safetensors").read_bytes() != (tmp_path / "plain/model.safetensors").read_bytes()


def test_the_command_takes_a_file(masked_dir: Path, tmp_path: Path) -> None:
    table = tmp_path / "data.jsonl"
    rows = [{"id": each.id, "text": each.text, "label": each.label} for each in sentences().sentences]
    table.write_text("\n".join(map(json.dumps, rows)) + "\n")
    arguments = [
        "train",
        "transformer",
        "--data",
        str(table),
        "--out",
        str(tmp_path / "out"),
        "--set",
        f"model={masked_dir}",
    ]
    file = write(tmp_path, "bad.tsv", "premise\thypothesis\tlabel\nx\ty\tno\n")
    done = CliRunner().invoke(app, [*arguments, "--intermediate", str(file), "--set", "device=cpu"])
    assert isinstance(done.exception, TrainError)
    assert "bad.tsv, line 2: label is 'no'" in str(done.exception)
    file = write(tmp_path, "good.tsv", MNLI)
    done = CliRunner().invoke(app, [*arguments, "--intermediate", str(file), "--set", "device=cpu", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["facts"]["intermediate task"] == "sentence pairs"


def test_tags_are_upos_or_xpos() -> None:
    with pytest.raises(TrainError, match="expected upos or xpos"):
        FineTuningRecipe(tags="deprel")
