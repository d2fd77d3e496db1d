"""Which sampling unit a suite has: of LI-Adger and other published sets, of tables, and of files that declare one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from acceptability import Sentence, Suite, load_suite
from acceptability.errors import SuiteError
from acceptability.suites import add_group_tag, pair_within_items, write_suite
from acceptability.types import Contrast


@pytest.mark.usefixtures("data")
def test_contrasts_of_li_adger_are_lexicalisations_of_296_pairs_of_types() -> None:
    suite = load_suite("li_adger")
    assert suite.unit == "type_pair"
    pairs = Counter(contrast.tags["type_pair"] for contrast in suite.contrasts)
    assert (len(pairs), pairs.total()) == (296, 2365)
    types = {sentence.id: sentence.tags["type"] for sentence in suite.sentences}
    by_types = {
        contrast.tags["type_pair"]: (types[contrast.better], types[contrast.worse]) for contrast in suite.contrasts
    }
    assert len(set(by_types.values())) == 296
    assert all(name == f"{better} > {worse}" for name, (better, worse) in by_types.items())


@pytest.mark.usefixtures("data")
def test_sentences_of_li_adger_stay_with_their_lexicalisations_and_partners() -> None:
    suite = load_suite("li_adger")
    unit = {sentence.id: sentence.tags["type_pair"] for sentence in suite.sentences}
    of_type: dict[str, set[str]] = {}
    for sentence in suite.sentences:
        of_type.setdefault(sentence.tags["type"], set()).add(unit[sentence.id])
    assert {len(units) for units in of_type.values()} == {1}
    assert all(unit[contrast.better] == unit[contrast.worse] for contrast in suite.contrasts)
    # No coarser than that: two types are together only if a chain of pairs connects them.
    assert len(set(unit.values())) == 236
    assert all(contrast.tags["type_group"] == unit[contrast.better] for contrast in suite.contrasts)


@pytest.mark.usefixtures("data")
def test_derived_tags_are_not_part_of_the_hash() -> None:
    suite = load_suite("li_adger")
    assert suite.derived_tags == ("type_group", "type_pair")
    # As it was before there were such tags, so that former signatures stay valid.
    assert suite.hash == "33aaee49f71d"
    part = suite.filter(type_pair="32.1.martin.1a.g > 32.1.martin.2c.*")
    assert (len(part.contrasts), part.unit, part.derived_tags) == (8, suite.unit, suite.derived_tags)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("name", "pairs", "units"), [("npi/cloze", 3869, 3072), ("gulordava2018/english", 410, 41)])
def test_pairs_of_one_paradigm_are_together(name: str, pairs: int, units: int) -> None:
    suite = load_suite(name)
    tag = suite.unit
    assert (len(suite.contrasts), len({contrast.tags[tag] for contrast in suite.contrasts})) == (pairs, units)
    by_text: dict[str, set[str]] = {}
    for sentence in suite.sentences:
        by_text.setdefault(sentence.text, set()).add(sentence.tags[tag])
    assert name != "npi/cloze" or {len(values) for values in by_text.values()} == {1}


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_has_the_unit_set_or_item_if_all_rows_have_it(tmp_path: Path) -> None:
    pairs = write(tmp_path / "pairs.csv", "good,bad\nA b.,A c.\nD e.,D f.\n")
    assert load_suite(pairs).unit == "item"
    sentences = write(tmp_path / "sentences.csv", "text,label,item\nA b.,1,1\nA c.,0,1\nD e.,1,2\n")
    assert load_suite(sentences).unit == "item"
    both = write(tmp_path / "both.csv", "text,label,item,set\nA b.,1,1,x\nA c.,0,1,y\n")
    assert load_suite(both).unit == "set"
    incomplete = write(tmp_path / "some.csv", "text,label,item\nA b.,1,1\nA c.,0,\n")
    assert load_suite(incomplete).unit == ""


def test_the_unit_of_a_table_can_be_given(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "text,label,item,frame\nA b.,1,1,x\nA c.,0,1,x\nD e.,1,2,x\n")
    assert load_suite(table, unit="frame").unit == "frame"
    assert load_suite(table, unit="frame/item").unit_tags == ("frame", "item")
    assert load_suite(table, unit="row").unit == ""
    with pytest.raises(SuiteError, match="3 of 3 sentences have no tag 'fram'.*Did you mean 'frame'"):
        load_suite(table, unit="fram")


def test_a_file_of_ours_can_declare_its_unit(tmp_path: Path) -> None:
    rows = '{"id": "a", "text": "A.", "tags": {"frame": "1"}}\n{"id": "b", "text": "B.", "tags": {"frame": "1"}}\n'
    declared = write(tmp_path / "d.jsonl", '{"suite": {"unit": "frame"}}\n' + rows)
    suite = load_suite(declared)
    assert (suite.unit, len(suite.sentences)) == ("frame", 2)
    assert suite.hash == load_suite(write(tmp_path / "e.jsonl", rows)).hash
    for line in (
        '{"suite": {"unit": 1}}',
        '{"suite": {"unit": "frame", "units": 2}}',
        '{"suite": {"derived_tags": []}}',
    ):
        with pytest.raises(SuiteError, match="line 1: .*expected"):
            load_suite(write(tmp_path / "wrong.jsonl", line + "\n" + rows))


def test_what_a_suite_declares_is_exported(tmp_path: Path) -> None:
    sentences = tuple(Sentence(name, name, tags={"item": "1", "frame": "1"}) for name in "ab")
    contrasts = (Contrast("a", "b", {"item": "1", "frame": "2"}),)
    for unit, derived in (("item", ()), ("", ()), ("frame", ()), ("frame/item", ("frame",))):
        suite = Suite("s", sentences, contrasts, unit=unit, derived_tags=derived)
        write_suite(suite, tmp_path / "s.jsonl")
        again = load_suite(str(tmp_path / "s.jsonl"))
        assert (again.unit, again.derived_tags, again.hash) == (unit, derived, suite.hash)
        # The tags of a contrast, which its sentences need not share, are kept too.
        assert again.contrasts[0].tags == contrasts[0].tags
    assert (tmp_path / "s.jsonl").read_text().startswith('{"suite": ')


def test_contrasts_within_items_are_sampled_by_item() -> None:
    sentences = tuple(
        Sentence(f"{i}{k}", f"s {i} {k}", k % 2, tags={"frame": str(i)}) for i in range(2) for k in range(4)
    )
    paired = pair_within_items(Suite("s", sentences), by="frame")
    # Four contrasts of two good and two bad sentences share these.
    assert (len(paired.contrasts), paired.unit) == (8, "frame")
    assert pair_within_items(Suite("s", (*sentences, Sentence("x", "x"))), by="frame").unit == ""


def test_groups_that_share_a_sentence_are_one() -> None:
    suite = Suite("s", tuple(Sentence(name, name) for name in "abcdef"), (Contrast("b", "d"),))
    grouped = add_group_tag(suite, "g", [["b", "c"], ["d", "e"], ["e", "c"], []])
    assert {sentence.id: sentence.tags["g"] for sentence in grouped.sentences} == {
        **dict.fromkeys("bcde", "b"), "a": "a", "f": "f",
    }  # fmt: skip
    assert grouped.contrasts[0].tags == {"g": "b"}
    assert grouped.hash == suite.hash


def test_suites_with_different_units_are_merged_without_one() -> None:
    from acceptability.suites import _merge_suites

    first = Suite("x/a", (Sentence("1", "A.", tags={"item": "1"}),), unit="item")
    second = Suite("x/b", (Sentence("2", "B.", tags={"item": "1"}),))
    merged, remarks = _merge_suites("x", [first, second])
    assert merged.unit == ""
    assert "different sampling units" in remarks[1]
    assert _merge_suites("x", [first])[0].unit == "item"
