"""Spreadsheets that tests write themselves: the smallest .xlsx and .ods files that hold some cells."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

# A part of the extra "data".
CALAMINE = "python_calamine"

Rows = Sequence[Sequence[object]]

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def write_xlsx(path: Path, sheets: Mapping[str, Rows], merged: Sequence[str] = (), hidden: Sequence[str] = ()) -> Path:
    """Write sheets of cells; merged ranges are those of every sheet, and what is None is no cell at all."""
    pytest.importorskip(CALAMINE)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="r{number}" '
        f'state="{"hidden" if name in hidden else "visible"}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    parts = "".join(
        f'<Relationship Id="r{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, len(sheets) + 1)
    )
    merges = "".join(f'<mergeCell ref="{each}"/>' for each in merged)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" Type="{_OFFICE}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{parts}</Relationships>'
        )
        for number, rows in enumerate(sheets.values(), start=1):
            body = "".join(f'<row r="{index}">{_cells(index, row)}</row>' for index, row in enumerate(rows, start=1))
            archive.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData>'
                + (f"<mergeCells>{merges}</mergeCells>" if merges else "")
                + "</worksheet>",
            )
    return path


def _cells(number: int, row: Sequence[object]) -> str:
    return "".join(
        _cell(f"{chr(ord('A') + column)}{number}", value) for column, value in enumerate(row) if value is not None
    )


def _cell(place: str, value: object) -> str:
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def write_ods(path: Path, sheets: Mapping[str, Rows], tail: str = "") -> Path:
    """Write sheets of cells, with any rows after them, such as the empty million that LibreOffice writes."""
    pytest.importorskip(CALAMINE)
    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
        + f"{tail}</table:table>"
        for name, rows in sheets.items()
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{_ODF}:manifest:1.0"><m:file-entry m:full-path="/" '
            'm:media-type="application/vnd.oasis.opendocument.spreadsheet"/></m:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:table="{_ODF}:table:1.0" '
            f'xmlns:text="{_ODF}:text:1.0"><office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    return path


def _ods_cell(value: object) -> str:
    kind = f'"float" office:value="{value}"' if isinstance(value, int | float) else '"string"'
    return f"<table:table-cell office:value-type={kind}><text:p>{escape(str(value))}</text:p></table:table-cell>"
