"""CSV that spreadsheets open."""

from __future__ import annotations

import io
from typing import Any

import pytest

from resolute.cli.display.tables.csv_rows import write_rows


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+cmd", "'+cmd"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("-0.5", "-0.5"),
        ("-inf", "-inf"),
        (-0.5, "-0.5"),
        ("a=b", "a=b"),
        (None, ""),
    ],
)
def test_no_text_becomes_a_formula(cell: Any, written: str) -> None:
    file = io.StringIO()
    write_rows(file, ["name", "=1"], [["x", cell]])
    assert file.getvalue() == f"name,'=1\nx,{written}\n"
