"""What of a stranger's text reaches a terminal."""

from __future__ import annotations

import io
import json
import sys
import time
from datetime import datetime, timezone

import pytest

from resolute.cli.display.log_lines import format_line
from resolute.cli.display.terminal import neutralised, neutralised_output
from resolute.client.schema.records import LineRecord
from resolute.client.schema.states import LogLevel


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("loss 0.5\n\tδ é 中 👍🏽", "loss 0.5\n\tδ é 中 👍🏽"),
        ("\x1b[2J", "␛[2J"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("ok\x08\x08no\x7f\r\0", "ok␈␈no\\u007f␍␀"),
        ("\x9b2J\x85", "\\u009b2J\\u0085"),
        ("\u202egpj.exe\u2066\u200f", "\\u202egpj.exe\\u2066\\u200f"),
        ("\ud800", "\\ud800"),
        ("\x1b[31mred", "␛[31mred"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert neutralised(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[31mred\n", "\x1b[31mred\x1b[0m\n"),
        ("\x1b[31mred\x1b[m!", "\x1b[31mred\x1b[m!"),
        ("\x1b[0m\x1b[38:5:1mred\x1b[K", "\x1b[0m\x1b[38:5:1mred␛[K\x1b[0m"),
    ],
)
def test_colours_stay_where_they_may_and_end_with_the_text(text: str, shown: str) -> None:
    assert neutralised(text, colours=True) == shown


@pytest.mark.parametrize("text", ["\x1b[31m", "\x1b[", "\r", "\u202e", "\x1b[1;"])
def test_a_long_line_of_control_characters_takes_no_longer_for_each_of_them(text: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        for _ in range(16_000 // count):
            format_line(line(text * count))
        return time.process_time() - began

    seconds(1_000)
    assert seconds(16_000) < 4 * seconds(1_000) + 0.05


def test_json_stays_the_same_value() -> None:
    value = {"a\u202e": ["\x1b\x7f\x9b\ud800", "é"]}
    assert json.loads(neutralised(json.dumps(value, ensure_ascii=False))) == value


def test_streams_are_neutralised_within_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with neutralised_output():
        sys.stdout.write("a\x1b[2Jb\n")
        sys.stdout.writelines(["\x07\n"])
        assert not sys.stdout.isatty()
    assert sys.stdout is out
    assert out.getvalue() == "a␛[2Jb\n␇\n"


def line(message: str) -> LineRecord:
    moment = datetime(2030, 1, 31, tzinfo=timezone.utc)
    return LineRecord(
        line_id=1,
        message=message,
        level=LogLevel.INFO,
        rank=3,
        stdtype="stdout",
        run=1,
        time=moment,
        trial_uuid="",
        origin="",
        container="",
        agent="",
    )


def test_a_progress_bar_redraws_itself_and_not_what_stands_before_it() -> None:
    prefix = format_line(line(""))
    assert format_line(line("10%\r20%")) == f"{prefix}10%\r{prefix}20%"
    assert len(format_line(line("x\r" * 4_000))) < 3 * 4_000
    assert format_line(line("a\nb\x1b[A")) == f"{prefix}a␊b␛[A"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("\x1b[8mhidden\x1b[0m", "hidden\x1b[0m"),
        ("\x1b[1;5;31mloud\x1b[0m", "\x1b[1;31mloud\x1b[0m"),
        ("\x1b[06;4mx\x1b[m", "\x1b[4mx\x1b[m"),
        ("\x1b[38;5;8mgrey\x1b[0m", "\x1b[38;5;8mgrey\x1b[0m"),
        ("\x1b[38;2;5;6;8;8mrgb\x1b[0m", "\x1b[38;2;5;6;8mrgb\x1b[0m"),
        ("\x1b[38:5:8mgrey\x1b[0m", "\x1b[38:5:8mgrey\x1b[0m"),
        ("\x1b[4;58;5;8mline\x1b[0m", "\x1b[4mline\x1b[0m"),
        ("\x1b[58:5:8;58;2;8;8;8;1mline\x1b[0m", "\x1b[1mline\x1b[0m"),
        ("\x1b[38mx\x1b[0m", "\x1b[38mx\x1b[0m"),
    ],
)
def test_colours_hide_nothing(sent: str, shown: str) -> None:
    assert neutralised(sent, colours=True) == shown
