"""Charts for notebooks: what is drawn, what is left out, and that nothing of a name becomes markup."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest

from resolute.client.charts.axes import Axis
from resolute.client.charts.chart import Chart
from resolute.client.charts.svg import Line

SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "</text><script>alert(1)</script>"


def drawn(*lines: Line, log: bool = False, title: str = "training/loss") -> ET.Element:
    chart = Chart(title, lines, log=log)
    assert chart._repr_html_() == chart.svg()
    return ET.fromstring(chart.svg())


def lines_of(root: ET.Element) -> list[list[tuple[float, float]]]:
    found = [line.attrib["points"].split() for line in root.iter(f"{SVG}polyline")]
    return [[(float(x), float(y)) for x, y in (point.split(",") for point in line)] for line in found]


def test_lines_go_from_left_to_right_and_larger_values_are_higher() -> None:
    [points] = lines_of(drawn(Line("trial 1", ((1, 0.5), (2, 0.25), (3, 1.0)))))
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    by_height = sorted(range(3), key=lambda at: -points[at][1])
    assert by_height == [1, 0, 2]


def test_values_that_are_no_numbers_leave_gaps_and_lone_points_are_dots() -> None:
    values = ((1, 1.0), (2, 2.0), (3, math.nan), (4, 3.0), (5, math.inf), (6, 4.0), (7, 5.0))
    root = drawn(Line("trial 1", values))
    assert [len(piece) for piece in lines_of(root)] == [2, 2]
    assert len(list(root.iter(f"{SVG}circle"))) == 1


def test_a_logarithmic_axis_leaves_out_what_is_not_above_zero() -> None:
    root = drawn(Line("trial 1", ((1, 0.0), (2, 0.001), (3, 0.1), (4, -1.0))), log=True)
    assert [len(piece) for piece in lines_of(root)] == [2]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"0.001", "0.01", "0.1"} <= set(texts)


def test_names_are_text() -> None:
    root = drawn(Line(MARKUP, ((1, 1.0), (2, 2.0))), title=MARKUP)
    assert {node.tag for node in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "text", "path", "polyline")
    }
    assert sum(text.text == MARKUP for text in root.iter(f"{SVG}text")) == 2


def test_nothing_and_very_much_can_be_drawn() -> None:
    assert "No points" in Chart("training/loss", ()).svg()
    many = tuple(Line(f"trial {number}", ((1, number), (2, number))) for number in range(200))
    text = Chart("training/loss", many).svg()
    assert text.count("<polyline") == 200
    assert "140 more" in text
    assert len(set(re.findall(r'stroke="(#\w+)" stroke-width="1.5"( stroke-dasharray="[^"]+")?', text))) == 32


@pytest.mark.parametrize(
    "values", [(5.0,), (0.0,), (-1e308, 1e308), (5e-324, 1e-323), (1e300, 1e308), (1.0, 1.0 + 2**-52)]
)
@pytest.mark.parametrize("log", [False, True])
def test_every_stretch_of_numbers_has_an_axis(values: tuple[float, ...], log: bool) -> None:
    if log and min(values) <= 0:
        return
    axis = Axis.around(values, log=log, start=0.0, end=100.0)
    assert all(0 <= axis.place(value) <= 100 for value in values)
    assert all(axis.least <= value <= axis.most and text for value, text in axis.ticks(5))
    assert len(axis.ticks(5)) <= 16


def test_ticks_are_round() -> None:
    axis = Axis.around((0.03, 0.97), log=False, start=0.0, end=100.0)
    assert [text for _, text in axis.ticks(5)] == ["0.2", "0.4", "0.6", "0.8"]
