from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from acceptability import evaluate
from acceptability.report.page import Section, write_page
from acceptability.report.table import group_table, number


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("src", "href")]


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path: Path) -> None:
    results = evaluate("starter", ["uniform"], by="phenomenon")
    results[0] = replace(results[0], model="<script>alert(1)</script>")
    path = write_page(tmp_path / "p.html", "A <b>title</b>", [Section("All", results)], models=[("<i>", "&")])
    page = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert "link" not in tags.seen
    assert tags.links == []
    assert tags.seen.count("tr") == len(results) + 1
    assert results[1].signature.split("|")[0] in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_undefined_value_is_a_dash(tmp_path: Path) -> None:
    result = replace(evaluate("starter", ["uniform"])[0], value=None, low=None, high=None, reason="because")
    page = write_page(tmp_path / "p.html", "t", [Section("All", [result])]).read_text()
    assert "because" in page
    assert number(None) == "–"


def test_groups_stand_in_rows_and_models_in_columns() -> None:
    results = [
        each for each in evaluate("starter", ["uniform"], measures=["PairAccuracy"], by="phenomenon") if each.group
    ]
    table = group_table(results)
    assert table.row_count == 13
    assert [column.header for column in table.columns] == ["group", "uniform"]
