"""Tables as people have them: each is read rightly, or refused with a line that says what to do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from acceptability.errors import AcceptabilityError, SuiteError
from acceptability.suites import load_suite
from acceptability.types import Suite

from .sheets import write_ods, write_xlsx

LABELLED = [("Cats sleep.", 1), ("Cats sleeps.", 0)]


def written(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def labelled(suite: Suite) -> list[tuple[str, int | None]]:
    return [(sentence.text, sentence.label) for sentence in suite]


def rated(suite: Suite) -> list[tuple[str, float | None]]:
    return [(sentence.text, sentence.rating) for sentence in suite]


TABLE = "text,label\nCats sleep.,1\nCats sleeps.,0\n"


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("plain.csv", TABLE, ""),
        ("bom.csv", b"\xef\xbb\xbf" + TABLE.encode(), ""),
        ("utf16.csv", TABLE.encode("utf-16"), "encoding UTF-16"),
        ("utf16be.csv", b"\xfe\xff" + TABLE.encode("utf-16-be"), "encoding UTF-16"),
        ("utf16_no_mark.csv", TABLE.encode("utf-16-le"), "encoding UTF-16"),
        ("utf32.csv", TABLE.encode("utf-32"), "encoding UTF-32"),
        ("semicolons.csv", TABLE.replace(",", ";"), "separated by semicolons"),
        ("tabs.csv", TABLE.replace(",", "\t"), "separated by tabs"),
        ("commas.tsv", TABLE, "separated by commas"),
        ("old_mac.csv", TABLE.replace("\n", "\r"), ""),
        ("capitals.csv", TABLE.replace("text,label", "TEXT,Label"), "text is 'TEXT', label is 'Label'"),
        ("spaces.csv", TABLE.replace("text,label", " Sentence ,  Label "), "text is 'Sentence'"),
        ("spaced.csv", TABLE.replace(",", ", "), ""),
        ("quoted.csv", '"text","label"\n"Cats sleep.","1"\n"Cats sleeps.","0"\n', ""),
        ("true.csv", "text,label\nCats sleep.,TRUE\nCats sleeps.,FALSE\n", "false = 0, true = 1"),
        ("broken_name.csv", '"x\ny",text,label\nq,Cats sleep.,1\nq,Cats sleeps.,0\n', ""),
        ("yes.csv", "Sentence,Grammatical?\nCats sleep.,yes\nCats sleeps.,no\n", "no = 0, yes = 1"),
        ("words.csv", "Sentence,Judgement\nCats sleep.,good\nCats sleeps.,bad\n", "bad = 0, good = 1"),
        ("stars.csv", "judgment;sentence\nOK;Cats sleep.\n*;Cats sleeps.\n", "* = 0, ok = 1"),
        ("trailing.csv", TABLE + ",\n,\n   ,\n", "3 empty rows left out (lines 4, 5, 6)"),
        ("trailing_columns.csv", "text,label,,\nCats sleep.,1,,\nCats sleeps.,0,,\n", ""),
        ("wide_rows.csv", "text,label\nCats sleep.,1,,\nCats sleeps.,0,\n", ""),
        ("title.csv", "My experiment;;\n" + "Sentence;Label;Item\nCats sleep.;1;1\nCats sleeps.;0;1\n", "line 1 above"),
        ("title_alone.csv", "My experiment\n\n" + TABLE, "line 1 above the header left out"),
        ("pandas.csv", ",text,label\n0,Cats sleep.,1\n1,Cats sleeps.,0\n", "without a name: column 1"),
        ("floats.csv", "text,label,x\nCats sleep.,1.0,\nCats sleeps.,0.0,\n", ""),
        ("headless.tsv", "1\tCats sleep.\n0\tCats sleeps.\n", "no header: a column of labels and one of sentences"),
        ("headless.csv", "Cats sleep.,yes\nCats sleeps.,no\n", "no header"),
        ("array.json", json.dumps([{"Sent": t, "label": str(n)} for t, n in LABELLED], indent=1), "text is 'Sent'"),
        ("lines.json", "\n".join(json.dumps({"text": t, "label": n}) for t, n in LABELLED), ""),
        ("array.jsonl", json.dumps([{"text": t, "label": bool(n)} for t, n in LABELLED]), "true = 1"),
        # The time of packing would be part of the name of the test, and differ between the processes that run them.
        ("packed.csv.gz", gzip.compress(TABLE.encode(), mtime=0), ""),
        (
            "doubled.csv",
            'text,label,x\nCats sleep.,1,""a, b""\nCats sleeps.,0,c\n',
            "1 cell in doubled quotation marks",
        ),
    ],
)
def test_a_table_of_labelled_sentences(tmp_path: Path, name: str, content: str | bytes, note: str) -> None:
    suite = load_suite(written(tmp_path, name, content))
    assert labelled(suite) == LABELLED
    assert suite.name == name.partition(".")[0]
    assert note in "; ".join(suite.notes)
    assert bool(suite.notes) == bool(note)


def test_spreadsheets_are_read_by_their_first_visible_sheet(tmp_path: Path) -> None:
    table = [["Sentence", "Label"], ["Cats sleep.", True], ["Cats sleeps.", False]]
    other = [["Sentence", "Label"], ["Dogs bark.", 1]]
    path = write_xlsx(tmp_path / "two.xlsx", {"Old": other, "Items": table, "More": other}, hidden=["Old"])
    suite = load_suite(str(path))
    assert labelled(suite) == LABELLED
    assert "sheet 'Items' (--sheet chooses another: 'Old', 'More')" in suite.notes
    assert load_suite(str(path), sheet="Old").texts == ("Dogs bark.",)
    with pytest.raises(SuiteError, match=r"has no sheet 'Itms'; it has Old, Items, More\. Did you mean 'Items'"):
        load_suite(str(path), sheet="Itms")
    with pytest.raises(SuiteError, match="is no spreadsheet and has no sheet 'Items': omit --sheet"):
        load_suite(written(tmp_path, "a.csv", TABLE), sheet="Items")


def test_numbers_of_spreadsheets_are_those_that_people_see(tmp_path: Path) -> None:
    rows = [["Item", "Sentence", "Rating"], [1, "Cats sleep.", 6.25], [2, "Cats sleeps.", 2]]
    for path in (write_xlsx(tmp_path / "n.xlsx", {"A": rows}), write_ods(tmp_path / "n.ods", {"A": rows})):
        suite = load_suite(str(path), columns={"rating": "Rating"})
        assert rated(suite) == [("Cats sleep.", 6.25), ("Cats sleeps.", 2.0)]
        assert [sentence.tags["Item"] for sentence in suite] == ["1", "2"]


def test_a_million_empty_rows_of_libreoffice_are_none(tmp_path: Path) -> None:
    tail = (
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    path = write_ods(tmp_path / "a.ods", {"A": [["text", "label"], ["Cats sleep.", 1], ["Cats sleeps.", 0]]}, tail)
    assert labelled(load_suite(str(path))) == LABELLED


def test_merged_cells_give_their_value_to_the_rows_that_they_cover(tmp_path: Path) -> None:
    rows = [["Item", "Sentence", "Label"], [7, "Cats sleep.", 1], [None, "Cats sleeps.", 0]]
    suite = load_suite(str(write_xlsx(tmp_path / "m.xlsx", {"A": rows}, merged=["A2:A3"])), pair_by="item")
    assert [sentence.tags["Item"] for sentence in suite] == ["7", "7"]
    assert len(suite.contrasts) == 1
    assert "1 cell filled that a merged one covers" in suite.notes


def test_merged_cells_beside_the_table_are_no_part_of_it(tmp_path: Path) -> None:
    rows = [["Sentence", "Label"], ["Cats sleep.", 1], ["Cats sleeps.", 0]]
    suite = load_suite(str(write_xlsx(tmp_path / "m.xlsx", {"A": rows}, merged=["F2:F3"])))
    assert [(sentence.text, sentence.label) for sentence in suite] == [("Cats sleep.", 1), ("Cats sleeps.", 0)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # The name of "Condition" over two columns would leave the second column without one, and its names as data.
        (
            "merged.csv",
            "Condition,,Label\ngood,bad,\nA b.,B a.,1\n",
            "line 1: column 2 has cells and no name",
        ),
        ("merged2.csv", "Sentence,,Label\nA b.,x,1\nB a.,y,0\n", "line 1: column 2 has cells and no name"),
        # Split at its comma, 3,5 would be a rating of 3 and a tag 5.
        ("comma.csv", "text,rating\nA b.,3,5\n", "line 2: 3 columns; the header has 2. If 3,5 is one number"),
        ("quoted_comma.csv", 'text,rating\nA b.,"3,5"\nB a.,"2,25"\n', "has 3,5: is the comma the decimal mark"),
        ("mixed.csv", "text;rating\nA b.;3,5\nB a.;2.5\n", "has 3,5 and 2.5: is the comma the decimal mark"),
        ("thousands.tsv", "text\trating\nA b.\t1,250\nB a.\t2,375\n", "has 1,250: is the comma the decimal mark"),
        ("points.csv", "text;rating\nA b.;1.250\nB a.;2.375\n", "has 1.250: is the point the decimal mark"),
        # An unquoted comma would cut the sentence short.
        ("cut.csv", "text,label\nWell, cats sleep.,1\n", "A cell with a comma in it needs quotation marks"),
        # The second quotation mark would close the first, with a row between them.
        ("open.csv", 'text,label\n"Cats sleep.,1\nDogs bark.,1\nHe said "Go.,0\n', "--no-quoting"),
        ("swallowed.csv", 'text,label\n"Cats sleep.,1\nDogs bark".,1\nC d.,1\n', "--no-quoting"),
        (
            "closed_late.csv",
            'text,label\n"Cats sleep.,1\nDogs bark.",1\nC d.,1\n',
            "as if its quotation mark were closed",
        ),
        ("one_column.csv", 'text\n"Cats sleep.\nDogs bark."\nC d.\n', "a quoted cell has a line break"),
        ("backslash.csv", 'text,label\n"He said \\"no\\".",1\n', "--no-quoting"),
        # 1 below "ungrammatical" would be taken for acceptable.
        (
            "negative.csv",
            "sentence,ungrammatical\nA b.,0\nB a.,1\n",
            '--columns label=ungrammatical --labels "1=0,0=1"',
        ),
        ("bad.csv", "sentence,bad\nA b.,no\nB a.,yes\n", '--columns label=bad --labels "1=0,0=1"'),
        ("good.csv", "sentence,good\nA b.,1\nB a.,0\n", "--columns label=good"),
        ("seven.csv", "text,label\nA b.,7\nB a.,1\nC d.,4\n", "If these are ratings: --columns label=-,rating=label"),
        ("acceptability.csv", "text,acceptability\nA b.,6.5\nB a.,1\n", "rating=acceptability"),
        ("one_two.csv", "text,label\nA b.,1\nB a.,2\n", r'say which: --labels "2=0'),
        ("languages.csv", "text,label\nA b.,ja\nB a.,nein\n", "label is 'ja'; expected 1"),
        ("empty_or_star.csv", "text,judgement\nA b.,\nB a.,*\n", '--labels "empty=1"'),
        ("two.csv", "text,sentence,label\nA b c.,D e f.,1\n", "'text' and 'sentence' could both be the sentence"),
        ("two_labels.csv", "text,grammaticality,acceptability\nA b.,1,0\n", "could both be the label"),
        ("two_separators.csv", "a,b;c\nA,b;c\nB,a;d\n", "may be separated by commas or semicolons"),
        ("unnamed.csv", "text\nA b.,1\nB a.,0\n", "has commas, and the first line, 'text', has none"),
        (
            "pair_label.csv",
            "sentence_good,sentence_bad,label\nA b.,B a.,1\nC d.,D c.,0\n",
            "a=FIRST,b=SECOND,better=label",
        ),
        ("choice.csv", "sentence_a,sentence_b,label\nA b.,B a.,1\n", "--columns a=sentence_a,b=sentence_b,better=NAME"),
        ("quiet.csv", "A b c.,1,x\nB a c.,0,y\n", "columns are numbered: --columns text=2,label=1"),
        ("mojibake.csv", "text,label\nmaman très,1\n".encode("latin-1"), "'très' (--encoding cp1252) or 'trčs'"),
        ("cyrillic.csv", "text,label\nмама,1\n".encode("cp1251"), "(--encoding cp1251) or"),
        ("japanese.csv", "text,label\n太郎は寝る,1\n".encode("shift_jis"), "no other encoding is certain"),
        ("again.csv", "good,bad\nA b.,B a.\ngood,bad\nC d.,D c.\n", "line 3: the header again. Remove this row"),
        ("star.csv", "sentence\nCats sleep.\n*Cats sleeps.\n", "line 3: '*Cats sleeps.' begins with the mark '*'"),
        ("mark.csv", "good,bad\nCats sleep.,?? Cats sleeps.\n", "line 2: '?? Cats sleeps.' begins with the mark '??'"),
        ("name.csv", "sentence,label\n#NAME?,1\n", "line 2: the sentence is '#NAME?', which stands for none"),
        ("missing.csv", "good,bad\nA b.,NA\n", "line 2: the sentence is 'NA'"),
        ("no_answer.csv", "text,label\nA b.,NA\nB a.,1\n", '--labels "NA=none"'),
        ("ids.csv", "id,text\n1,A b.\n1,B a.\n", "Ids must be unique. If they are none: --columns id=-"),
        ("old.xls", b"\xd0\xcf\x11\xe0", "save it as .xlsx, .ods or .csv"),
        ("not.xlsx", TABLE, "not.xlsx is no spreadsheet, whatever its name says"),
        ("renamed.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an .xls file or has a password"),
        ("headless3.tsv", "1\tA b.\t1\n2\tB a.\t0\n", "If this row is no header, columns are numbered"),
        # Scored as they are, "*" and brackets would be words of the sentence.
        ("choice_in_cell.csv", "text\nI [has/*have] it.\n", "line 2: 'I [has/*have] it.' has the mark '*'"),
        ("obligatory.csv", "text\nWe rely *(on) it.\n", "has the mark '*'"),
        ("inner.csv", "text\nJohn *himself *go.\n", "has the mark '*'"),
        ("after.csv", "text\nThe cats sleeps.*\n", "has the mark '*'"),
        ("some_speakers.csv", "text\n%The car needs washed.\n", "begins with the mark '%'"),
    ],
)
def test_what_could_be_read_wrongly_is_refused(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(AcceptabilityError) as caught:
        load_suite(written(tmp_path, name, content))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        (
            "a.csv",
            "s,u\nA b.,0\nB a.,1\n",
            {"columns": {"text": "s", "label": "u"}, "labels": {"1": 0, "0": 1}},
            [1, 0],
        ),
        ("b.csv", "text,label\nA b.,ja\nB a.,nein\n", {"labels": {"ja": 1, "NEIN": 0}}, [1, 0]),
        ("c.csv", "text,label\nA b.,1\nB a.,2\n", {"labels": {"2": 0}}, [1, 0]),
        ("d.csv", "text,judgement\nA b.,\nB a.,*\nC d.,?\n", {"labels": {"empty": 1}}, [1, 0, None]),
        ("e.csv", "text,judgement\nA b.,\nB a.,*\n", {"labels": {"empty": None}}, [None, 0]),
        ("f.csv", "text,label\nA b.,perhaps\nB a.,0\n", {"labels": {"perhaps": "none"}}, [None, 0]),
        ("g.csv", "text,judgement\nA b.,see below\n", {"columns": {"label": "-"}}, [None]),
        ("h.csv", "A b c.,1,x\nB a c.,0,y\n", {"columns": {"text": "1", "label": "2"}}, [1, 0]),
        ("i.csv", "text,label\nmaman très,1\n".encode("latin-1"), {"encoding": "cp1252"}, [1]),
        ("j.csv", "a,text;label\nx,A;1\n", {"separator": "semicolon", "columns": {"text": "a,text"}}, [1]),
        ("k.txt", "Satz|OK\n".replace("|", "\t") + "A b.\t1\n", {"columns": {"text": "Satz", "label": "OK"}}, [1]),
    ],
)
def test_the_option_that_a_line_names_decides(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], expected: list[int | None]
) -> None:
    suite = load_suite(written(tmp_path, name, content), **options)
    assert [sentence.label for sentence in suite] == expected


def test_a_negative_name_needs_labels_even_if_the_user_names_it(tmp_path: Path) -> None:
    path = written(tmp_path, "n.csv", "sentence,ungrammatical\nA b.,0\nB a.,1\n")
    with pytest.raises(SuiteError, match="is named for what is wrong, and has '0': say what it means: --labels"):
        load_suite(path, columns={"label": "ungrammatical"})
    words = written(tmp_path, "w.csv", "sentence,violation\nA b.,grammatical\nB a.,ungrammatical\n")
    assert [one.label for one in load_suite(words, columns={"label": "violation"})] == [1, 0]


def test_quotation_marks_are_text_if_the_user_says_so(tmp_path: Path) -> None:
    content = 'text,label\n"Go." he said.,1\nShe said "no,0\n'
    path = written(tmp_path, "q.csv", content)
    with pytest.raises(SuiteError, match=r"q\.csv, line 2: .*--no-quoting"):
        load_suite(path)
    assert labelled(load_suite(path, quoting=False)) == [('"Go." he said.', 1), ('She said "no', 0)]


def test_decimal_commas(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", "Satz;rating\nA b.;3,5\nB a.;2,25\nC d.;4\n")
    suite = load_suite(path, columns={"text": "Satz"})
    assert rated(suite) == [("A b.", 3.5), ("B a.", 2.25), ("C d.", 4.0)]
    assert "decimal commas" in suite.notes
    pairs = "good;bad;rating_good;rating_bad\nA b.;B a.;6,5;2\nC d.;D c.;6;1,5\n"
    assert [rating for _, rating in rated(load_suite(written(tmp_path, "p.csv", pairs)))] == [6.5, 2.0, 6.0, 1.5]
    quoted = written(tmp_path, "q.csv", 'text,rating\nA b.,"3,5"\n')
    assert rated(load_suite(quoted, decimal="comma")) == [("A b.", 3.5)]
    thousands = written(tmp_path, "t.tsv", "text\trating\nA b.\t1,250\n")
    assert rated(load_suite(thousands, decimal=",")) == [("A b.", 1.25)]


@pytest.mark.parametrize(
    ("text", "encoding", "title"),
    [
        ("Mädchen schliefen auf der Straße.", "latin-1", "Windows-1252 (Latin-1)"),
        ("Il a été très élevé, ça va.", "latin-1", "Windows-1252 (Latin-1)"),
        ("El niño está aquí. ¿Dónde?", "cp1252", "Windows-1252 (Latin-1)"),
        ("Příliš žluťoučký kůň.", "cp1250", "Windows-1250"),
        ("A nővér fölé hűlt.", "cp1250", "Windows-1250"),
    ],
)
def test_an_old_encoding_is_recognised_if_one_text_is_possible(
    tmp_path: Path, text: str, encoding: str, title: str
) -> None:
    suite = load_suite(written(tmp_path, "old.csv", f"text;label\n{text};1\n".encode(encoding)))
    assert suite.texts == (text,)
    assert f"encoding {title}" in suite.notes


class TestPairs:
    def pairs(self, suite: Suite) -> list[tuple[str, str]]:
        return [(suite[one.better].text, suite[one.worse].text) for one in suite.contrasts]

    @pytest.mark.parametrize(
        "header",
        ["Good,Bad", "Sentence Good,sentence-bad", "sen,wrong_sen", "Grammatical,Ungrammatical",
         "acceptable sentence,unacceptable sentence"],
    )  # fmt: skip
    def test_in_two_columns(self, tmp_path: Path, header: str) -> None:
        suite = load_suite(written(tmp_path, "p.csv", f"{header}\nA b.,B a.\n"))
        assert self.pairs(suite) == [("A b.", "B a.")]

    def test_in_rows_of_an_item(self, tmp_path: Path) -> None:
        rows = "Paradigm;Item;Grammaticality;Sentence\n" + "".join(
            f"{paradigm};{item};{word};{word} {paradigm}{item}\n"
            for paradigm in "xy"
            for item in (1, 2)
            for word in ("Ungrammatical", "Grammatical")
        )
        path = written(tmp_path, "rows.csv", rows)
        assert not load_suite(path).contrasts
        suite = load_suite(path, pair_by="paradigm/item")
        assert self.pairs(suite)[1] == ("Grammatical x2", "Ungrammatical x2")
        assert (len(suite.contrasts), suite.unit, suite.derived_tags) == (4, "set", ("set",))
        assert {one.tags["set"] for one in suite.contrasts} == {"x/1", "x/2", "y/1", "y/2"}
        # By the number of the item alone, the sentences of two paradigms are contrasted with each other.
        assert len(load_suite(path, pair_by="item").contrasts) == 8
        with pytest.raises(SuiteError, match=r"with the tag 'itme'; its tags: .*Did you mean 'Item'"):
            load_suite(path, pair_by="itme")

    def test_in_lines_of_true_and_false(self, tmp_path: Path) -> None:
        content = "True\tthe author laughs\nFalse\tthe author laugh\nTrue\ta b\nFalse\tb a\nFalse\tb b\n"
        suite = load_suite(written(tmp_path, "clams.txt", content))
        assert self.pairs(suite) == [("the author laughs", "the author laugh"), ("a b", "b a"), ("a b", "b b")]
        assert (suite.unit, len({one.tags["item"] for one in suite.contrasts})) == ("item", 2)
        assert "each true line contrasted with the false ones that follow it" in "; ".join(suite.notes)
        # In any other order the lines tell of no items.
        suite = load_suite(written(tmp_path, "list.txt", "True\ta b\nTrue\tc d\nFalse\tb a\n"))
        assert (labelled(suite), suite.contrasts) == ([("a b", 1), ("c d", 1), ("b a", 0)], ())

    def test_with_a_column_that_says_which_is_better(self, tmp_path: Path) -> None:
        columns = {"a": "sentence_a", "b": "sentence_b", "better": "label"}
        rows = "sentence_a,sentence_b,label\nA b.,B a.,{}\nC d.,D c.,{}\n"
        right = [("A b.", "B a."), ("D c.", "C d.")]
        for first, second in (("1", "2"), ("a", "b"), ("A", "B"), ("sentence_a", "sentence_b"), ("first", "second")):
            path = written(tmp_path, "c.csv", rows.format(first, second))
            assert self.pairs(load_suite(path, columns=columns)) == right
        path = written(tmp_path, "c.csv", rows.format(0, 1))
        # 1 may be the position of the better one, or say that the first is.
        with pytest.raises(SuiteError, match=r'--labels "0=a,1=b" or --labels "1=a,0=b"'):
            load_suite(path, columns=columns)
        assert self.pairs(load_suite(path, columns=columns, labels={"0": "a", "1": "b"})) == right
        assert self.pairs(load_suite(path, columns=columns, labels={"1": "a", "0": "b"})) == [
            ("B a.", "A b."),
            ("C d.", "D c."),
        ]
        with pytest.raises(SuiteError, match="'better' is not named"):
            load_suite(path, columns={"a": "sentence_a", "b": "sentence_b"})

    def test_a_binary_label_beside_pairs_is_a_tag_only_if_the_user_says_so(self, tmp_path: Path) -> None:
        path = written(tmp_path, "l.csv", "good,bad,label\nA b.,B a.,1\nC d.,D c.,0\n")
        with pytest.raises(SuiteError, match="does it say which sentence is the better one"):
            load_suite(path)
        suite = load_suite(path, columns={"label": "-"})
        assert [one.tags["label"] for one in suite.contrasts] == ["1", "0"]

    def test_with_several_bad_sentences(self, tmp_path: Path) -> None:
        content = "good,bad,bad_2,bad_3\nA b.,B a.,B b.,\nC d.,D c.,D d.,C c.\n"
        suite = load_suite(written(tmp_path, "n.csv", content))
        assert self.pairs(suite)[2:] == [("C d.", "D c."), ("C d.", "D d."), ("C d.", "C c.")]
        assert len(suite.contrasts) == 5
        assert suite.unit == "item"
        row = {"good": "A b.", "bad": ["B a.", "B b."]}
        assert len(load_suite(written(tmp_path, "n.jsonl", json.dumps(row))).contrasts) == 2
        named = written(tmp_path, "m.csv", "g,x,y\nA b.,B a.,B b.\n")
        assert len(load_suite(named, columns={"good": "g", "bad": "x", "bad_2": "y"}).contrasts) == 2

    def test_with_a_context_for_each_member(self, tmp_path: Path) -> None:
        content = "good,bad,context_good,context_bad\nHe left.,She left.,Tom came.,Ann came.\n"
        suite = load_suite(written(tmp_path, "c.csv", content))
        assert [sentence.tags["context"] for sentence in suite] == ["Tom came.", "Ann came."]
        assert "context" not in suite.contrasts[0].tags
        # The same sentence after two contexts.
        suite = load_suite(
            written(tmp_path, "d.csv", "sentence,context_good,context_bad\nHe left.,Tom came.,Ann came.\n")
        )
        assert self.pairs(suite) == [("He left.", "He left.")]
        assert [sentence.tags["context"] for sentence in suite] == ["Tom came.", "Ann came."]
        # One context for both, under a capital.
        suite = load_suite(written(tmp_path, "e.csv", "good,bad,Context\nHe left.,She left.,Tom came.\n"))
        assert {sentence.tags["context"] for sentence in suite} == {"Tom came."}


def test_the_package_s_own_columns_win_over_others_that_could_be_meant(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, "a.csv", "text,label,grammatical,utterance\nA b.,1,0,uttered thing\n"))
    assert (suite.texts, suite.sentences[0].label) == (("A b.",), 1)
    assert suite.sentences[0].tags == {"grammatical": "0", "utterance": "uttered thing"}


def test_an_id_that_repeats_is_a_tag_if_only_its_name_is_like_one(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, "a.csv", "ID,text\n7,A b.\n7,B a.\n"))
    assert [(sentence.id, sentence.tags["ID"]) for sentence in suite] == [("1", "7"), ("2", "7")]
    assert "'ID' is a tag and no id" in suite.notes[0]
    assert load_suite(written(tmp_path, "b.csv", "ID,text\n7,A b.\n8,B a.\n")).ids == ("7", "8")


def test_options_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", TABLE)
    for options, message in (
        ({"separator": "|"}, "separator is '|'; expected comma, semicolon or tab"),
        ({"decimal": ";"}, "decimal is ';'; expected point or comma"),
        ({"labels": {"yes": 2}}, "labels: 'yes' is 2; expected 1"),
        ({"encoding": "utf-9"}, "no encoding is named 'utf-9'"),
        ({"encoding": "ascii", "columns": {"text": "texts"}}, "Did you mean 'text'"),
        ({"encoding": "base64"}, "no encoding is named 'base64'"),
        ({"sheets": "A"}, "a table has no option 'sheets'. Did you mean 'sheet'"),
        ({"labels": {"yes": "a"}}, "a and b are for pairs"),
    ):
        with pytest.raises(AcceptabilityError, match=message.replace("|", r"\|").replace("?", r"\?")):
            load_suite(path, **options)
    with pytest.raises(SuiteError, match="labels can be given for tables only"):
        load_suite("starter", labels={"yes": 1})


def test_stars_that_are_no_marks_are_text(tmp_path: Path) -> None:
    texts = ["I *really* mean it.", "What the f*** is d*mn?", "5*3 and 5 * 3.", "3% of it."]
    path = written(tmp_path, "stars.csv", "text\n" + "\n".join(texts) + "\n")
    assert list(load_suite(path).texts) == texts


@pytest.mark.parametrize("text", [" Cats sleep.", "Cats sleep. ", "Cats  sleep.", "Cats\xa0sleep."])
def test_spaces_that_people_do_not_see_are_said(tmp_path: Path, text: str) -> None:
    suite = load_suite(written(tmp_path, "s.csv", f'text,label\n"{text}",1\nDogs bark.,1\n'))
    assert suite.texts[0] == text
    assert [note for note in suite.notes if note.startswith("1 of 2 sentences have spaces at an end") and "(1)" in note]


def test_numbers_before_all_sentences_are_said(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, "n.csv", "text,label\n(1) Cats sleep.,1\n(2) Cats sleeps.,0\n"))
    assert suite.notes == ("all sentences begin with a number, which is scored with them: '(1) Cats sleep.'",)
    assert not load_suite(written(tmp_path, "m.csv", "text\n(1) Cats sleep.\nDogs bark.\n")).notes


def test_an_item_in_capitals_is_the_sampling_unit(tmp_path: Path) -> None:
    rows = "1,Cats sleep.,1\n1,Cats sleeps.,0\n2,Dogs bark.,1\n2,Dogs barks.,0\n"
    assert load_suite(written(tmp_path, "c.csv", "Item,Sentence,Label\n" + rows)).unit == "Item"
    assert load_suite(written(tmp_path, "e.csv", "Item no.,Sentence,Label\n" + rows)).unit == "Item no."
    assert load_suite(written(tmp_path, "d.csv", "Item,Sentence,Label\n" + rows), pair_by="item").unit == "Item"


def test_an_item_that_stands_only_in_the_first_of_its_rows(tmp_path: Path) -> None:
    rows = "item,text,label\n1,Cats sleep.,1\n1,Cats sleeps.,0\n,Cats sleeping.,0\n2,Dogs bark.,1\n,Dogs barks.,0\n"
    path = written(tmp_path, "first.csv", rows)
    suite = load_suite(path)
    assert suite.unit == ""
    assert suite.notes == ("'item' is empty in 2 of 5 rows and not filled in, so that it is no sampling unit",)
    with pytest.raises(
        SuiteError, match=r"'item' is empty for 2 of 5 labelled sentences \(3, 5\)\. If empty means 'as a"
    ):
        load_suite(path, pair_by="item")


def test_items_that_are_numbered_anew_are_no_sampling_unit(tmp_path: Path) -> None:
    rows = "number,1,Cats sleep.,1\nnumber,1,Cats sleeps.,0\norder,1,Who left?,1\norder,1,Left who?,0\n"
    suite = load_suite(written(tmp_path, "p.csv", "paradigm,item,text,label\n" + rows), pair_by="paradigm/item")
    assert suite.unit == "set"
    assert sorted({sentence.tags["set"] for sentence in suite}) == ["number/1", "order/1"]
