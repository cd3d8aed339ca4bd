"""Every suite that `make test` leaves out gets its turn in `.ci/run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from turn import SUITES, Suite, turn

ROOT = Path(__file__).resolve().parents[3]
MINUTES = 20


def test_each_suite_gets_a_turn_within_the_time() -> None:
    turns = [turn(SUITES, seed=seed, minutes=MINUTES) for seed in range(len(SUITES))]
    assert {suite for chosen in turns for suite in chosen} == set(SUITES)
    assert all(chosen[0] is SUITES[seed] for seed, chosen in enumerate(turns))
    assert all(sum(suite.minutes for suite in chosen) <= MINUTES for chosen in turns)
    assert turn(SUITES, seed=5 + 3 * len(SUITES), minutes=MINUTES) == turns[5]


def test_on_a_slow_machine_the_next_that_fits_takes_the_turn() -> None:
    suites = [Suite("long", 9, ("long",)), Suite("short", 2, ("short",))]
    assert [suite.name for suite in turn(suites, seed=0, minutes=5)] == ["short"]
    assert turn(suites, seed=0, minutes=1) == []


def test_each_folder_of_tests_is_run_by_make_test_or_by_a_suite() -> None:
    targets = {suite.target[0] for suite in SUITES} | {"test", "distributed"}
    recipes = re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    run = "\n".join(recipe for target, recipe in recipes if target in targets)
    named = set(re.findall(r"tests/(\w+)", run))
    testpaths = re.search(r"^testpaths = (\[.*\])$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert testpaths is not None
    named |= set(re.findall(r"tests/(\w+)", testpaths[1]))
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    # What `tests/compat` has is run by tests of other folders.
    assert folders - {"compat"} <= named


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_what_a_suite_runs_is_there(suite: Suite) -> None:
    assert re.search(rf"^{suite.target[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert not suite.install or os.access(ROOT / suite.install, os.X_OK)
    for argument in suite.target:
        if engine := re.fullmatch(r"ENGINE=(\w+)", argument):
            assert list((ROOT / "tests/engines" / engine[1]).glob("test_*.py"))


def test_a_name_that_no_suite_has_is_refused() -> None:
    command = [sys.executable, "tools/turn.py", "slrum"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no suite is called slrum: there are clients, container" in done.stderr
