"""What docs/launch.md shows works: every command of it is run, in order, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from support.pages.commands import ROOT, run_script, script_of

PAGE = "docs/launch.md"


def test_the_commands_of_the_page_run_from_beginning_to_end(tmp_path: Path) -> None:
    said = run_script(script_of(PAGE), tmp_path, timeout=550)
    assert len(re.findall(r"^experiment \d+ COMPLETED$", said, re.MULTILINE)) == 4
    # What the page promises of the log of one rank, of a layer's own words, and of two machines.
    assert "[rank=1]" in said
    assert "ranks of this trial: 2" in said
    assert "finished at step 200" in said


def test_the_launcher_on_the_page_is_the_one_that_is_run() -> None:
    launcher = (ROOT / "examples" / "distributed" / "launcher.py").read_text()
    shown = re.search(r"^```python\n(.*?)^```$", (ROOT / PAGE).read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1] in launcher
