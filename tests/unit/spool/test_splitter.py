from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.spool.line_splitter import MAX_LINE, LineSplitter


def split(*chunks: bytes) -> list[bytes]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.finish()]


def test_lines_end_at_newlines_and_blank_ones_stay() -> None:
    assert split(b"a\n\nb\n") == [b"a", b"", b"b"]


def test_the_last_line_needs_no_end() -> None:
    assert split(b"a\nb") == [b"a", b"b"]


def test_a_line_may_come_in_parts() -> None:
    assert split(b"hel", b"lo", b"\nwor", b"ld\n") == [b"hello", b"world"]


def test_a_return_before_a_newline_belongs_to_the_end() -> None:
    assert split(b"a\r\nb\r", b"\n\r\n") == [b"a", b"b", b""]


def test_lines_of_ranks_may_end_with_a_return_too() -> None:
    assert split(b"[rank=0] a\r\n[rank=0] b\r\n") == [b"[rank=0] a", b"[rank=0] b"]
    assert split(b"[rank=0]  9%\r[rank=1] c\r\n", b"[rank=0] \r", b"\nd\n") == [
        b"[rank=1] c",
        b"[rank=0]  9%",
        b"d",
    ]


def test_of_a_progress_bar_the_last_state_stays() -> None:
    assert split(b"\r 10%|#  |\r 50%|## |\r100%|###|\nnext\n") == [b"100%|###|", b"next"]
    assert split(b" 10%\r 50%\r100%\r\n") == [b"100%"]
    assert split(b" 10%\x1b[1G 50%\x1b", b"[G100%\x1b[0G\nnext\n") == [b"100%", b"next"]


def test_a_bar_that_was_wiped_away_leaves_nothing() -> None:
    assert split(b"\r 50%|##|\r        \rdone\n") == [b"done"]
    assert split(b"\r 50%|##|\r        \r") == []


@pytest.mark.parametrize(
    "redraw", ["\x1b[1A\x1b[2K{}%\n", "\x1b[F{}%\n", "\x1b[A\r\x1b[K{}%\n", "\x1b[1A{}%\x1b[0K\n"]
)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_line_that_is_redrawn_from_below_is_stored_once(redraw: str, size: int) -> None:
    output = ("before\n0%\n" + "".join(redraw.format(state) for state in range(50)) + "after\n").encode()
    chunks = [output[begin : begin + size] for begin in range(0, len(output), size)]
    assert split(*chunks) == [b"before", b"0%", b"49%", b"after"]


@pytest.mark.parametrize("redraw", ["\x1b[2Fa {0}%\nb {0}%\n", "\x1b[2A\ra {0}%\nb {0}%\n"])
@pytest.mark.parametrize("size", [1, 1000])
def test_two_lines_that_are_redrawn_from_below_are_few_lines(redraw: str, size: int) -> None:
    output = ("a 0%\nb 0%\n" + "".join(redraw.format(state) for state in range(50)) + "after\n").encode()
    chunks = [output[begin : begin + size] for begin in range(0, len(output), size)]
    assert split(*chunks) == [b"a 0%", b"b 0%", b"a 49%", b"b 49%", b"after"]


@pytest.mark.parametrize(
    "redraw",
    [
        "\x1b7{}%\x1b8",
        "\x1b[s{}%\x1b[u",
        "\x1b7\x1b[24;1H\x1b[2K{}%\x1b8",
        "\x1b7\x1b[24;0f{}%\x1b[K\x1b8",
        "\x1b[?25l\r{}%\x1b[0J\x1b[?25h",
        "\x1b[1A\r{}%\x1b[1B",
        "\x1b[1F{}%\x1b[1E",
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_bar_that_goes_back_to_a_saved_place_is_one_line(redraw: str, size: int) -> None:
    output = ("before\n" + "".join(redraw.format(state) for state in range(50)) + "\nafter\n").encode()
    lines = split(*[output[begin : begin + size] for begin in range(0, len(output), size)])
    assert [line for line in lines if line] in ([b"before", b"49%", b"after"], [b"before", b"after", b"49%"])


def test_what_stands_before_a_saved_place_stays() -> None:
    assert split(b"load \x1b7 10%\x1b8 50%\x1b8100%\nnext\n") == [b"load 100%", b"next"]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_bars_of_rich_and_what_is_printed_above_them_are_few_lines(size: int) -> None:
    again = "\r\x1b[2K\x1b[1A\x1b[2K"
    bars = "\x1b[32mone\x1b[0m {0}%\ntwo {0}%"
    output = "\x1b[?25l" + bars.format(0) + "".join(again + bars.format(done) for done in range(1, 30))
    output += again + "a note\n" + bars.format(30)
    output += "".join(again + bars.format(done) for done in range(31, 101)) + "\n\x1b[?25hafter\n"
    data = output.encode()
    assert split(*[data[begin : begin + size] for begin in range(0, len(data), size)]) == [
        b"\x1b[32mone\x1b[0m 0%",
        b"a note",
        b"\x1b[32mone\x1b[0m 30%",
        b"\x1b[32mone\x1b[0m 100%",
        b"two 100%",
        b"after",
    ]


def test_bars_of_ranks_below_each_other_do_not_mix() -> None:
    data = b""
    for done in range(30):
        for rank in (0, 1):
            data += b"[rank=%d] \r[rank=%d] epoch %d\n[rank=%d] \r[rank=%d] batch %d\x1b[A\r" % (
                (rank, rank, done) * 2
            )
    lines = split(data)
    assert lines[-4:] == [b"[rank=%d] %s 29" % (rank, bar) for rank in (0, 1) for bar in (b"epoch", b"batch")]
    assert len(lines) == 6


def test_pages_that_are_cleared_first_lose_no_line() -> None:
    assert split(b"\x1b[H\x1b[2Jone\ntwo\n\x1b[2J\x1b[1;1Hone\nthree\n") == [b"one", b"two", b"one", b"three"]
    # Goes to a row of the screen and never back.
    assert split(b"\x1b[5;1Hhead\nline\nlast\n") == [b"line", b"last", b"head"]


def test_what_erases_a_line_is_left_out() -> None:
    assert split(b"\r\x1b[K10%\r\x1b[K50%\nnext\n") == [b"50%", b"next"]
    assert split(b"10%\r\x1b[2K\rdone\n") == [b"done"]


def test_a_bar_that_never_ended_is_kept_at_the_end() -> None:
    assert split(b"\r 10%\r 50%\r") == [b" 50%"]
    assert split(b"\r 10%\r 50%") == [b" 50%"]


def test_colours_are_kept() -> None:
    assert split(b"\x1b[31mred\x1b[0m\n") == [b"\x1b[31mred\x1b[0m"]


def test_bars_of_several_ranks_do_not_wipe_each_other() -> None:
    output = b"[rank=0]  10%\r[rank=1]  10%\r[rank=0]  90%\r[rank=1] 100%\r[rank=1] \n[rank=0] \n"
    assert split(output) == [b"[rank=1] 100%", b"[rank=0]  90%"]


def test_a_long_line_becomes_several_that_all_name_their_rank() -> None:
    lines = split(b"[rank=3] " + b"x" * (2 * MAX_LINE) + b"\nshort\n")
    assert all(len(line) <= MAX_LINE for line in lines)
    assert [line[:9] for line in lines[:-1]] == [b"[rank=3] "] * 3
    assert b"".join(line[9:] for line in lines[:-1]) == b"x" * (2 * MAX_LINE)
    assert lines[-1] == b"short"


def test_a_long_line_is_not_cut_within_a_character() -> None:
    text = ("x" + "€" * MAX_LINE).encode()
    for lines in (split(text + b"\n"), split(text[:9000], text[9000:])):
        assert b"".join(lines) == text
        assert all(line.decode() for line in lines)


def test_a_line_without_end_does_not_wait_for_memory_to_run_out() -> None:
    splitter = LineSplitter()
    lines = list(splitter.feed(b"y" * (10 * MAX_LINE + 5)))
    assert len(lines) == 10
    assert list(splitter.finish()) == [b"y" * 5]


def test_a_line_of_exactly_the_limit_stays_whole() -> None:
    assert split(b"z" * MAX_LINE + b"\n") == [b"z" * MAX_LINE]


def test_a_bar_that_lasts_shows_each_new_state_once_when_asked() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"\r 10%\r 20%\r")) == []
    assert list(splitter.states()) == [b" 20%"]
    assert list(splitter.states()) == []
    assert list(splitter.feed(b" 30%\r")) == []
    assert list(splitter.states()) == [b" 30%"]
    # The state that was shown last is not repeated when the line ends with it.
    assert list(splitter.feed(b"\nend\n")) == [b"end"]


def test_bytes_that_are_no_text_pass_unharmed() -> None:
    assert split(b"\xff\xfe\x00\n") == [b"\xff\xfe\x00"]


MOVES = [b"\x1b[A", b"\x1b[2F", b"\x1b[B", b"\x1b7", b"\x1b8", b"\x1b[9;1H", b"\x1b[J", b"\x1b[2K"]


@given(st.lists(st.sampled_from([b"a", b"b\n", b"\n", b"\r", b"[rank=1] ", *MOVES]), max_size=40), st.data())
def test_however_the_cursor_moves_what_is_new_at_the_end_is_kept(
    parts: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(parts) + b"\x1b[Hlast\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    lines = split(*chunks)
    assert any(line.endswith(b"last") for line in lines)
    assert len(lines) <= whole.count(b"\n") + 100


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"[rank=1] ", b" 5%", "é".encode(), b"   "])), st.data())
def test_how_output_comes_in_pieces_changes_nothing(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert split(*chunks) == split(whole)


@given(st.binary(max_size=200), st.integers(0, 3 * MAX_LINE))
def test_without_returns_nothing_is_lost(tail: bytes, length: int) -> None:
    whole = b"q" * length + tail.replace(b"\r", b"").replace(b"\x1b", b"")
    assert b"".join(split(whole)) == whole.replace(b"\n", b"")


def nested_bars(*, outer: int = 2, inner: int = 50) -> bytes:
    """What two bars of tqdm write: the inner one is a row below, and is taken away at its end."""
    written = bytearray()
    for step in range(outer + 1):
        written += b"\repoch: %d/%d" % (step, outer)
        if step < outer:
            for done in range(inner + 1):
                written += b"\n\rbatch: %d/%d\x1b[A" % (done, inner)
            written += b"\n\r" + b" " * 12 + b"\r\x1b[A"
    return bytes(written) + b"\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 37, 10_000])
def test_bars_below_each_other_are_a_few_lines(size: int) -> None:
    splitter = LineSplitter()
    data = nested_bars() + b"after\n[rank=1] last\n"
    lines = [
        line for begin in range(0, len(data), size) for line in splitter.feed(data[begin : begin + size])
    ]
    lines += splitter.finish()
    assert lines == [b"epoch: 0/2", b"epoch: 2/2", b"after", b"[rank=1] last"]


def test_the_last_state_of_each_bar_that_stays_is_kept() -> None:
    # An inner bar of tqdm that stays: its last state takes the outer one's row, which goes a row down.
    data = b"\repoch 0/2"
    for step in (1, 2):
        data += b"\n\rbatch 0/2\x1b[A\n\rbatch 1/2\x1b[A\rbatch 2/2\n"
        data += b"\repoch %d/2\repoch %d/2" % (step, step)
    assert split(data + b"\n") == [b"epoch 0/2", b"batch 2/2", b"epoch 1/2", b"batch 2/2", b"epoch 2/2"]


def test_a_sequence_that_ends_the_stream_is_kept() -> None:
    splitter = LineSplitter()
    assert [*splitter.feed(b"text\x1b[3"), *splitter.finish()] == [b"text\x1b[3"]


def test_rows_above_the_first_are_bounded() -> None:
    splitter = LineSplitter()
    assert [*splitter.feed(b"\x1b[99A" * 1000)] == []
    (screen,) = splitter._screens.values()
    assert len(screen._rows) == 100


def test_of_too_many_ranks_that_draw_at_the_same_time_the_oldest_is_shown_as_it_is() -> None:
    splitter = LineSplitter()
    lines = list(splitter.feed(b"".join(b"[rank=%d] half\r" % rank for rank in range(1002))))
    assert lines == [b"[rank=0] half", b"[rank=1] half"]
    assert len(splitter._screens) == 1000
