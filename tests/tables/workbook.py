"""Workbooks as Excel writes them, as small as they can be."""

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def write_workbook(path: Path, **sheets: list[list[object]] | str) -> Path:
    """Write sheets by name: rows of cells, or the XML of their rows."""
    names = list(sheets)
    entries = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(names, 1))
    links = "".join(
        f'<Relationship Id="r{n}" Type="{_LINKS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(names) + 1)
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>{entries}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
        )
        for number, rows in enumerate(sheets.values(), 1):
            xml = rows if isinstance(rows, str) else "".join(map(row_xml, range(1, len(rows) + 1), rows))
            archive.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>{xml}</sheetData></worksheet>',
            )
    return path


def row_xml(number: int, cells: list[object]) -> str:
    """One row, in columns A, B, C … Z, AA, AB …"""
    parts = (_cell_xml(f"{_column(place)}{number}", cell) for place, cell in enumerate(cells) if cell is not None)
    return f'<row r="{number}">{"".join(parts)}</row>'


def _column(place: int) -> str:
    before = "" if place < 26 else _column(place // 26 - 1)
    return f"{before}{chr(65 + place % 26)}"


def _cell_xml(name: str, cell: object) -> str:
    if isinstance(cell, str):
        return f'<c r="{name}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    return f'<c r="{name}"><v>{cell}</v></c>'
