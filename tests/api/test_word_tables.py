"""Tables with a word a row: read in every usual form, annotated by models and published scores, refused if unclear."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from acceptability import annotate, complete, load_model, regress, words
from acceptability.api.psycholinguistics.word_tables import is_word_table, read_word_table
from acceptability.errors import AcceptabilityError, ModelError, ScoreError, SpecError, SuiteError

ROOT = Path(__file__).resolve().parents[2]
TOK = 'word\tzone\titem\nThe\t1\t1\n"cats\t2\t1\nsleep."\t3\t1\nDogs\t1\t2\nbark.\t2\t2\n'


def write(folder: Path, text: str, name: str = "words.tok") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("words.tok", TOK),
        ("words.tsv", TOK),
        ("words.csv", 'Word,Zone,Story\nThe,1,1\n"""cats",2,1\n"sleep.""",3,1\nDogs,1,2\nbark.,2,2\n'),
        ("words.csv", 'WORD;position;item\nThe;1;1\n"""cats";2;1\n"sleep.""";3;1\nDogs;1;2\nbark.;2;2\n'),
        # In any order, since the positions say what comes first.
        ("words.tsv", 'zone\titem\tword\n3\t1\tsleep."\n2\t2\tbark.\n1\t1\tThe\n2\t1\t"cats\n1\t2\tDogs\n'),
        (
            "words.jsonl",
            '{"word": "The", "item": 1, "zone": 1}\n{"word": "\\"cats", "item": 1, "zone": 2}\n'
            '{"word": "sleep.\\"", "item": 1, "zone": 3}\n{"word": "Dogs", "item": 2, "zone": 1}\n'
            '{"word": "bark.", "item": 2, "zone": 2}\n',
        ),
    ],
)
def test_words_are_read_from_every_usual_table(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, text, name)
    table = read_word_table(path)
    assert {sentence.id: sentence.text for sentence in table.suite} == {"1": 'The "cats sleep."', "2": "Dogs bark."}
    assert is_word_table(path)


def test_a_compressed_table_and_other_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "words.csv.gz"
    path.write_bytes(gzip.compress(b"token,para,n\nCats,a,1\nsleep.,a,2\n"))
    table = read_word_table(path, {"word": "token", "item": "para", "position": "n"})
    assert table.suite["a"].text == "Cats sleep."


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_words_are_read_in_every_usual_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("word\titem\nMädchen\t1\nschliefen.\t1\n".encode(encoding))
    assert read_word_table(path).suite["1"].text == "Mädchen schliefen."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Wort\titem\nCats\t1\n", "has no column 'word'; its columns are Wort, item"),
        ("word\titem\n\t1\n", "line 2: the word is empty"),
        ("word\titem\nCats\t\n", "line 2: the item is empty"),
        ("word\titem\n", "has no rows"),
        ("word\titem\tstory\nCats\t1\t1\n", "both 'item' and 'story' may be the item; say which: --columns item=item"),
        ("word\titem\na\t1\nb\t2\nc\t1\n", "line 4: item '1' goes on after another"),
        ("word\tzone\titem\na\tx\t1\n", "line 2: the position is 'x'; expected a number"),
        ("word\tzone\titem\na\t1\t1\nb\t1\t1\n", "item '1' has 'a' and 'b' at the same position, 1"),
        ("word\titem\na\t1\tx\n", "line 2: 3 columns; the header has 2"),
    ],
)
def test_a_table_that_would_be_read_wrongly_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError) as error:
        read_word_table(write(tmp_path, text))
    assert message in str(error.value)


@pytest.mark.parametrize("missing", [math.nan, pd.NA])
def test_a_word_that_pandas_takes_for_a_missing_value_is_refused(missing: object) -> None:
    frame = pd.DataFrame({"word": pd.Series(["The", missing, "hypothesis."], dtype=object)})
    with pytest.raises(SuiteError, match="line 1: the word is empty"):
        annotate(frame, "uniform")
    with pytest.raises(SuiteError, match="keep_default_na=False"):
        annotate(pd.DataFrame({"word": ["The", math.nan]}), "uniform")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "word\tRT\tRT\nCats\t310\t320\nsleep.\t290\t300\n")
    with pytest.raises(SuiteError, match="two columns are named 'RT'"):
        annotate(path, "uniform")


def test_a_table_of_which_no_row_would_be_left_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "word\titem\nCats\t1\nDogs\t2\n")
    with pytest.raises(SuiteError, match="each of its 2 rows lacks a value"):
        annotate(path, "uniform", spillover=1, drop_missing=True)


def test_sentences_are_no_table_of_words(tmp_path: Path) -> None:
    assert not is_word_table(write(tmp_path, "text,word\nCats sleep.,sleep\n", "a.csv"))
    assert not is_word_table(tmp_path / "none.csv")


# --- annotation ---


def test_rows_keep_their_columns_and_get_the_surprisal_of_their_word(tmp_path: Path) -> None:
    path = write(tmp_path, "word\titem\tzone\tRT\nsleep.\t1\t2\t352\nCats\t1\t1\t310\nsleep.\t1\t2\t362\n")
    rows = annotate(path, "trigram", entropy=True, rank=True, top=1)
    assert [(row["word"], row["RT"]) for row in rows] == [("sleep.", "352"), ("Cats", "310"), ("sleep.", "362")]
    expected = words("Cats sleep.", "trigram", entropy=True, rank=True, top=1)
    for row, number in zip(rows, (1, 0, 1), strict=True):
        for name in ("surprisal_bits", "entropy_bits", "entropy_reduction_bits", "rank", "top_1", "tokens"):
            assert row[name] == expected[number][name], name
    # Two tokens, "sleep" and the point.
    assert rows[0]["tokens"] == 2
    assert "2 rows have several tokens" in rows.notes[0] or "1 of 2 rows have several tokens" in rows.notes[0]


def test_the_rank_of_an_unknown_word_is_said_to_be_that_of_its_token(tmp_path: Path) -> None:
    path = write(tmp_path, "word\titem\tzone\nThe\t1\t1\nzzqx\t1\t2\n")
    rows = annotate(path, "trigram", rank=True)
    # The most probable token after "The" is <unk>, and this very word has a probability of 2^-59.
    assert (rows[1]["rank"], rows[1]["unknown"]) == (1, True)
    assert [note for note in rows.notes if note.startswith("1 of 2 rows have words that the model does not know")]
    known = write(tmp_path, "word\titem\tzone\nThe\t1\t1\ndog\t1\t2\n", "known.tok")
    assert not annotate(known, "trigram", rank=True).notes


def test_an_order_that_no_column_gives_is_said(tmp_path: Path) -> None:
    rows = annotate(write(tmp_path, "word\tcell\nCats\t1\nCats\t1\nsleep.\t2\n"), "trigram")
    assert [note.split(",")[0] for note in rows.notes] == [
        "no column is known as that of items",
        "no column is known as that of positions",
    ]
    assert "--columns position=COLUMN" in rows.notes[1]


def test_names_with_spaces_and_points_are_known(tmp_path: Path) -> None:
    path = write(tmp_path, "Item no.\tWord no.\tWord\n1\t1\tCats\n1\t1\tCats\n1\t2\tsleep.\n")
    assert repr(read_word_table(path)) == "WordTable('words', 3 rows, 2 words in 1 texts)"
    assert not annotate(path, "trigram").notes


def test_the_entropy_reduction_of_a_word_is_that_of_all_its_tokens() -> None:
    pytest.importorskip("torch")
    (first, second) = words("The keys", "mini-causal", entropy=True)
    assert second["tokens"] == 2
    assert first["entropy_bits"] - first["entropy_reduction_bits"] == pytest.approx(second["entropy_bits"], abs=1e-4)
    predictor = load_model("mini-causal").as_predictor(1)
    from acceptability import Query

    (output,) = predictor.run(predictor.encode([Query("The keys")]))
    assert second["entropy_bits"] - second["entropy_reduction_bits"] == pytest.approx(
        float(output.entropies_after[-1]) / math.log(2), abs=1e-5
    )


def test_length_frequency_and_spillover_are_those_of_words(tmp_path: Path) -> None:
    pytest.importorskip("wordfreq")
    path = write(tmp_path, TOK)
    rows = annotate(path, "uniform", unigrams="wordfreq:en", spillover=2)
    assert [row["length"] for row in rows] == [3, 5, 7, 4, 5]
    from wordfreq import word_frequency

    assert rows[1]["log_frequency"] == pytest.approx(math.log(word_frequency("cats", "en")))
    assert [row["length_previous1"] for row in rows] == [None, 3, 5, None, 4]
    assert [row["length_previous2"] for row in rows] == [None, None, 3, None, None]
    kept = annotate(path, "uniform", unigrams="wordfreq:en", spillover=1, drop_missing=True)
    assert [row["word"] for row in kept] == ['"cats', 'sleep."', "bark."]
    assert "2 of 5 rows lack a value in a new column and are left out" in kept.notes


def test_regions_of_interest_are_sums_over_their_words(tmp_path: Path) -> None:
    path = write(tmp_path, "word\titem\troi\nThe\t1\tsubject\ncats\t1\tsubject\nsleep.\t1\tverb\n")
    regions = annotate(path, "trigram", region="roi", entropy=True)
    single = annotate(path, "trigram", entropy=True)
    assert [(row["roi"], row["text"]) for row in regions] == [("subject", "The cats"), ("verb", "sleep.")]
    assert regions[0]["surprisal_bits"] == pytest.approx(single[0]["surprisal_bits"] + single[1]["surprisal_bits"])
    assert regions[0]["entropy_bits"] == single[0]["entropy_bits"]


def test_a_second_model_needs_other_names(tmp_path: Path) -> None:
    frame = annotate(write(tmp_path, TOK), "uniform").to_frame()
    with pytest.raises(SpecError, match="has a column 'surprisal_bits' already"):
        annotate(frame, "trigram")
    both = annotate(frame, "trigram", suffix="_trigram")
    assert {"surprisal_bits", "surprisal_bits_trigram"} <= both[0].keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either a model or scores"),
        ({"model": "uniform", "entropy": True}, "offers no distribution"),
        ({"model": "uniform", "region": "roi"}, "has no column 'roi' for regions"),
        ({"model": "uniform", "spillover": -1}, "spillover is -1"),
        ({"model": "uniform", "top": 101}, "top is 101"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(AcceptabilityError, match=message):
        annotate(write(tmp_path, TOK), **options)


# --- published scores ---


def publish(folder: Path, tokens: list[tuple[str, str]], name: str = "published.csv") -> Path:
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("token", "logprob", "story"), *((token, value, 0) for token, value in tokens)])
    return path


def test_published_tokens_are_joined_to_words(tmp_path: Path) -> None:
    table = write(tmp_path, "word\titem\nThe\t7\ncats\t7\nsleep.\t7\n")
    path = publish(tmp_path, [("The", ""), (" c", "-1.5"), ("ats", "-0.5"), (" sleep", "-3"), (".", "-0.25")])
    rows = annotate(table, scores=path)
    assert [row["surprisal_bits"] for row in rows] == [
        None,
        pytest.approx(2 / math.log(2)),
        pytest.approx(3.25 / math.log(2)),
    ]
    assert [row["tokens"] for row in rows] == [0, 2, 2]
    assert rows.notes[0].startswith("no column is known as that of positions")
    assert rows.notes[1:] == (
        "words without a value: 1, since published.csv has none for a token of theirs (the first token of a text "
        "follows nothing)",
    )
    # A word of which a part is not scored has no value either.
    split = publish(tmp_path, [("T", ""), ("he", "-1"), (" cats", "-2"), (" sleep.", "-3")])
    assert annotate(table, scores=split)[0]["surprisal_bits"] is None


def test_a_text_without_any_published_value_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path, "word\titem\nStop!\t1\n")
    scores = write(tmp_path, "token\tlogprob\nStop!\t\n", "scores.tsv")
    with pytest.raises(ScoreError, match="scores.tsv, item '1' of words: no token of 'Stop!' has a value"):
        annotate(table, scores=scores)


def test_published_tokens_of_other_texts_are_refused(tmp_path: Path) -> None:
    table = write(tmp_path, "word\titem\nThe\t7\ncats\t7\nsleep.\t7\n")
    for tokens in ([("The", "-1"), (" cats", "-2")], [("A", "-1"), (" b", "-2"), (" c", "-3")]):
        with pytest.raises(ScoreError, match="has no text with the 3 words of item '7'"):
            annotate(table, scores=publish(tmp_path, tokens))
    with pytest.raises(ScoreError, match="line 2: logprob is '1.5'; expected a log-probability"):
        annotate(table, scores=publish(tmp_path, [("The", "1.5")]))
    with pytest.raises(SpecError, match="have no entropies"):
        annotate(table, scores=publish(tmp_path, [("The", "-1")]), entropy=True)


# --- Natural Stories ---


@pytest.fixture
def stories(data: Path) -> Path:
    folder = data / "more" / "naturalstories"
    if not folder.is_dir():
        pytest.skip("Natural Stories are not here")
    return folder


FORMULA = (
    "meanItemRT ~ surprisal_bits + length + log_frequency + surprisal_bits_previous1 + length_previous1 + "
    "log_frequency_previous1 + (1 | item)"
)


def test_every_word_of_natural_stories_gets_the_surprisal_of_gpt3(stories: Path) -> None:
    rows = annotate(stories / "processed_wordinfo.tsv", scores=stories / "all_stories_gpt3.csv.gz")
    assert len(rows) == 10_256
    # Nothing precedes the first token of a story: of ten words there is no published value.
    lacking = [(row["item"], row["zone"], row["word"]) for row in rows if row["surprisal_bits"] is None]
    assert sorted(lacking, key=lambda each: int(each[0])) == [
        *(("1", "1", "If"), ("2", "1", "A"), ("3", "1", "It"), ("4", "1", "Once"), ("5", "1", "At")),
        *(("6", "1", "This"), ("7", "1", "The"), ("8", "1", "The"), ("9", "1", "Tulip"), ("10", "1", "Tourette's")),
    ]
    assert any("1 (item 2, 'peaked' is 'peeked')" in note for note in rows.notes)
    # An independent join: by the character offsets of the file, over the words of each story in their order.
    frame = pd.read_csv(stories / "all_stories_gpt3.csv.gz", keep_default_na=False)
    order = {(row["item"], int(row["zone"])): row for row in rows}
    for story, tokens in frame.groupby("story"):
        text = "".join(tokens["token"])
        starts = np.cumsum([0, *(len(word) + 1 for word in text.split(" "))])
        owner = np.searchsorted(starts, tokens["offset"] + tokens["token"].str.startswith(" "), side="right")
        values = pd.to_numeric(tokens["logprob"], errors="coerce")
        sums = values.groupby(owner).sum(min_count=1)
        for zone, total in sums.items():
            found = order[str(int(story) + 1), int(zone)]["surprisal_bits"]
            assert zone == 1 or found == pytest.approx(-total / math.log(2), abs=1e-4)


@pytest.mark.slow
def test_surprisal_predicts_the_reading_times_of_natural_stories(stories: Path) -> None:
    pytest.importorskip("wordfreq")
    pytest.importorskip("torch")
    options = {"unigrams": "wordfreq:en", "spillover": 1, "drop_missing": True}
    published = annotate(
        stories / "processed_wordinfo.tsv", scores=stories / "all_stories_gpt3.csv.gz", **options
    ).to_frame()
    own = annotate(stories / "processed_wordinfo.tsv", "mini-causal(stride=32)", **options).to_frame()
    page = (ROOT / "docs" / "howto" / "reading-times.md").read_text(encoding="utf-8")
    for frame in (published, own):
        frame["meanItemRT"] = frame["meanItemRT"].astype(float)
        fitted = regress(FORMULA, frame)
        # What the page on Natural Stories shows.
        assert str(fitted) in page
        # Milliseconds a bit; the literature has 1 to 4 in self-paced reading.
        for name in ("surprisal_bits", "surprisal_bits_previous1"):
            assert 0.3 < fitted[name].low < fitted[name].estimate < fitted[name].high < 3, name


# --- completions ---


def test_the_probability_of_a_word_is_that_of_its_tokens_and_its_end() -> None:
    pytest.importorskip("torch")
    model = load_model("mini-causal")
    tokens = model.next_tokens
    texts = tokens.token_texts
    prefix = tokens.encode_prefix("The keys to the cabinet")
    ids = [index for index, text in enumerate(texts) if text == " were"]
    first, after = tokens.next_logprobs([prefix, [*prefix, *ids]])
    opens = [text == " " or (text[:1] == " " and text[1:2].isalnum()) for text in texts]
    goes_on = [bool(text) and text[0] != " " and (text[0].isalnum() or text[0] in "'’-‑�") for text in texts]
    new_word = np.exp(first[opens]).sum()
    expected = np.exp(first[ids[0]]) * (1 - np.exp(after[goes_on]).sum()) / new_word
    listed = complete("The keys to the cabinet ", model)
    assert listed[0]["word"] == "were"
    assert listed[0]["probability"] == pytest.approx(expected, rel=1e-3)
    given = complete("The keys to the cabinet", model, candidates=["was", "were"])
    assert [row["word"] for row in given] == ["were", "was"]
    assert given[0]["probability"] == pytest.approx(expected, rel=1e-3)
    assert sum(row["share"] for row in given) == pytest.approx(1)
    assert listed.masses["new word"] == pytest.approx(float(new_word), rel=1e-4)
    assert sum(listed.masses.values()) == pytest.approx(1, abs=1e-4)


def test_no_word_of_a_vocabulary_is_more_probable_than_the_listed_ones() -> None:
    pytest.importorskip("torch")
    listed = complete("She lived in the", "mini-causal", top=5)
    others = [text.strip() for text in load_model("mini-causal").next_tokens.token_texts if text.strip().isalpha()]
    others = [word for word in dict.fromkeys(others) if word not in {row["word"] for row in listed}]
    weighed = complete("She lived in the", "mini-causal", candidates=others[::200])
    assert weighed[0]["probability"] <= listed[-1]["probability"] * 1.0001
    # Words of several tokens are found too.
    many = complete("She lived in the", "mini-causal", top=20)
    tokens = {text.strip() for text in load_model("mini-causal").next_tokens.token_texts}
    assert any(row["word"] not in tokens for row in many)


def test_completions_of_word_models_are_their_words() -> None:
    listed = complete("The keys to the", "trigram", top=3)
    distribution = np.exp(load_model("trigram").next_tokens.next_logprobs([[1, *ids("The keys to the")]])[0])
    assert listed.covered * listed.masses["new word"] == pytest.approx(
        sum(distribution[ids(row["word"])[0]] for row in listed), rel=1e-4
    )
    given = complete("The keys to the", "trigram", candidates=["house", "xyzzyx"])
    assert given[-1]["probability"] is None
    assert "not in the model's vocabulary: xyzzyx" in given.notes


def ids(text: str) -> list[int]:
    vocabulary = load_model("trigram").vocabulary
    return vocabulary.to_ids(vocabulary.tokenize(text)[0])


def test_a_masked_model_fills_the_mask() -> None:
    pytest.importorskip("torch")
    text = "The keys to the [MASK] are on the table."
    listed = complete(text, "mini-masked", top=2)
    given = complete(text, "mini-masked", candidates=[listed[0]["word"], "xylophones"])
    assert given[0]["word"] == listed[0]["word"]
    assert given[0]["probability"] == pytest.approx(listed[0]["probability"] * listed.masses["new word"], rel=1e-3)
    assert listed.fills_mask
    with pytest.raises(ModelError, match="write \\[MASK\\] where the word is missing"):
        complete("The keys to the", "mini-masked")


def test_tokens_are_listed_as_they_are() -> None:
    pytest.importorskip("torch")
    listed = complete("The keys to the cabinet", "mini-causal", by="token", top=3)
    rows = words("The keys to the cabinet were", "mini-causal", top=3)
    assert [row["token"] for row in listed] == [rows[-1][f"top_{number}"] for number in (1, 2, 3)]
    assert listed[0]["probability"] == pytest.approx(rows[-1]["top_1_probability"], rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "uniform"}, "uniform offers no distribution over the next token"),
        ({"by": "phrase"}, "by is 'phrase'; expected 'word' or 'token'"),
        ({"top": 0}, "top is 0"),
        ({"candidates": ["are"], "by": "token"}, "candidates are words"),
        ({"candidates": ["are", " "]}, "' ' is no word"),
    ],
)
def test_completions_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(AcceptabilityError, match=message):
        complete("The keys", **{"model": "trigram", **options})


def test_candidates_where_no_word_can_follow_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("trigram")
    size = len(model.next_tokens.token_texts)
    ends = np.full((1, size), -np.inf, np.float32)
    ends[0, list(model.next_tokens.end_ids)] = 0
    monkeypatch.setattr(type(model.next_tokens), "next_logprobs", lambda self, prefixes: ends)
    with pytest.raises(ModelError, match="expects no new word after 'The keys to the'"):
        complete("The keys to the", model, candidates=["house"])


def test_many_candidates_are_scored_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("trigram")
    kind, sizes = type(model.next_tokens), []
    compute = kind.next_logprobs

    def count(self: object, prefixes: list[list[int]]) -> object:
        sizes.append(len(prefixes))
        return compute(self, prefixes)

    monkeypatch.setattr(kind, "next_logprobs", count)
    words = [text for text in model.next_tokens.token_texts if text.isalpha()][:100]
    many = complete("The keys to the", model, candidates=words)
    assert max(sizes) <= 64
    one = complete("The keys to the", model, candidates=[words[70]])
    assert one[0]["probability"] in [row["probability"] for row in many if row["word"] == words[70]]
