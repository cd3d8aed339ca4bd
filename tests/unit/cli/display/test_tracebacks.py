"""Frames of libraries are folded, own frames and messages stay, failures that repeat are told once."""

from __future__ import annotations

from resolute.cli.display.output import notes_of
from resolute.cli.display.tracebacks import fold_text

TRACEBACK = """\
Traceback (most recent call last):
  File "/run/1/work/train.py", line 9, in <module>
    main()
  File "/venv/lib/python3.11/site-packages/torch/nn/module.py", line 1, in _call
    return forward(*args)
           ^^^^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/torch/nn/linear.py", line 2, in forward
    return F.linear(input)
  File "/run/1/work/model.py", line 3, in layer
    raise ValueError("no such layer")
ValueError: no such layer"""


def test_library_frames_are_counted_and_own_frames_stay() -> None:
    assert (
        fold_text(TRACEBACK)
        == """\
Traceback (most recent call last):
  File "/run/1/work/train.py", line 9, in <module>
    main()
  … 2 frames of torch
  File "/run/1/work/model.py", line 3, in layer
    raise ValueError("no such layer")
ValueError: no such layer"""
    )


def test_what_is_no_traceback_stays_as_it_is() -> None:
    text = 'loading\n    File of weights\n  File "weights.bin" is missing\n'
    assert fold_text(text) == text.rstrip("\n")


def test_a_failure_that_repeats_is_told_once_with_its_rows() -> None:
    rows = [(f"{number}", "Failure", "out of memory") for number in range(1, 8)]
    found = notes_of("Run", [*rows, ("8", "Failure", TRACEBACK)])
    assert found[0] == "Run 1, 2, 3 and 4 more: failure: out of memory"
    assert found[1].startswith("Run 8: failure: Traceback (most recent call last):\n")
    assert "… 2 frames of torch" in found[1]
    assert len(found) == 2
