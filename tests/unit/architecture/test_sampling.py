"""What is slow is run in part, by a seed that can be had again; and whole where that is asked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.suite.sampling import Sample
from support.suite.slow_tests import SlowTestNotes, slow_tests

SUITE = """
import pytest
from support import backends

@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(10))
def test_cases(case):
    pass

@pytest.mark.sampled(1, group="heavy")
def test_first():
    pass

@pytest.mark.sampled(1, group="heavy")
def test_second():
    pass

def test_loop(sample):
    print("loop", sample.of(range(10), 3), sample.size(whole=100, part=5))

def test_backend():
    backends.missing("no such server is here")
"""
SLOW = """
import pytest

@pytest.mark.parametrize("case", range(16))
def test_slow(case):
    pass

def test_fast():
    pass
"""
DATABASES = """
import pytest

@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("case", range(4))
def test_on_each(case, database):
    pass

def test_without():
    pass
"""
LEFT_OUT = re.compile(r"^left out by the sample: 9 tests \(tests/test_suite\.py 9\)\..*--whole", re.MULTILINE)
TESTS = Path(__file__).parents[2]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of its own, with the options of ours."""
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {TESTS}\ntestpaths = tests\nmarkers = sampled\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, *options: str) -> str:
    """What pytest says of it."""
    command = [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False).stdout


def passed(said: str) -> list[str]:
    """The tests that passed, and what the loop went through."""
    return sorted(re.findall(r"::(\S+).*PASSED|^(loop .*)$", said, re.MULTILINE))


def test_a_sample_is_chosen_anew_each_time_and_again_by_its_seed(suite: Path) -> None:
    said = run(suite, "--sample-seed", "7")
    assert re.search(r"4 passed, 1 skipped, 9 deselected", said), said
    assert passed(run(suite, "--sample-seed", "7")) == passed(said)
    seeds = {re.findall(r"--sample-seed (\w+)", run(suite, "--collect-only"))[0] for _ in range(2)}
    assert len(seeds) == 2


def test_workers_choose_alike_and_report_what_they_left_out(suite: Path) -> None:
    assert "4 passed, 1 skipped" in (said := run(suite, "-n", "2"))
    assert LEFT_OUT.search(said), said


def test_a_quiet_run_says_what_its_sample_left_out(suite: Path) -> None:
    assert LEFT_OUT.search(said := run(suite, "-q")), said


def test_all_is_run_where_that_is_asked(suite: Path) -> None:
    assert "13 passed, 1 skipped" in (said := run(suite, "--whole"))
    assert "loop [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] 100" in said


@pytest.mark.parametrize("named", [["tests"], ["tests/test_suite.py"], ["tests", "-n", "2"]])
def test_what_is_named_is_run_whole(suite: Path, named: list[str]) -> None:
    assert "13 passed, 1 skipped" in (said := run(suite, *named))
    assert "left out" not in said


def test_what_is_named_is_sampled_where_that_is_asked(suite: Path) -> None:
    assert "4 passed, 1 skipped" in run(suite, "tests", "--sample")


def test_of_slow_tests_one_in_eight_is_run_unless_they_are_named(suite: Path) -> None:
    tests = suite / "tests"
    (tests / "test_suite.py").write_text(SLOW)
    (tests / "slow_tests.txt").write_text("tests/test_suite.py::test_slow\n")
    assert "3 passed, 14 deselected" in run(suite)
    assert "17 passed" in run(suite, "tests")
    assert "17 passed" in run(suite, "tests/test_suite.py", "--note-slow", "-n", "2")
    assert not (tests / "slow_tests.txt").read_text(), "it has become fast"


def test_of_long_tests_one_in_sixteen_is_run(suite: Path) -> None:
    (suite / "tests" / "test_suite.py").write_text(SLOW)
    (suite / "tests" / "slow_tests.txt").write_text("tests/test_suite.py::test_slow long\n")
    assert "2 passed, 15 deselected" in run(suite)


def test_a_test_for_several_databases_is_run_on_one(suite: Path) -> None:
    (suite / "tests" / "test_suite.py").write_text(DATABASES)
    assert "5 passed, 4 deselected" in run(suite)
    assert "9 passed" in run(suite, "tests")
    ran = {
        run(suite, "--sample", "tests", "--sample-seed", str(seed), "-v").count("sqlite") for seed in range(4)
    }
    assert len(ran) > 1, "another seed takes other databases"


def test_notes_tell_long_tests_from_others_and_keep_what_was_not_measured(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "slow_tests.txt"
    file.write_text("t.py::test_other long\nt.py::test_now_fast\n")
    notes = SlowTestNotes(tmp_path)
    for case, seconds in (("slow[a]", 2.0), ("long[a]", 1.0), ("long[b]", 11.0), ("now_fast", 0.5)):
        notes.pytest_runtest_logreport(
            pytest.TestReport(f"t.py::test_{case}", ("", 0, ""), {}, "passed", None, "call", duration=seconds)
        )
    notes.pytest_sessionfinish()
    assert file.read_text() == "t.py::test_long long\nt.py::test_other long\nt.py::test_slow\n"


def test_of_files_that_share_what_takes_long_to_start_some_run_whole(suite: Path) -> None:
    mark = 'import pytest\npytestmark = pytest.mark.sampled(1, group="clusters", files=True)\n'
    files = [f"tests/test_{name}.py" for name in ("first", "second", "third")]
    for file in files:
        (suite / file).write_text(SLOW.replace("import pytest\n", mark))
    (suite / "tests" / "test_suite.py").unlink()
    (suite / "tests" / "slow_tests.txt").write_text("".join(f"{file}::test_slow\n" for file in files))
    assert "17 passed, 34 deselected" in run(suite, "--sample-seed", "7")


def test_what_is_slow_is_there() -> None:
    """A name that nobody has any more would hide that its successor always runs."""
    for name in slow_tests(TESTS.parent):
        file, _, test = name.partition("::")
        owner, _, function = test.rpartition("::")
        # The tests of a class may be inherited, from a contract in `tests/support`.
        wanted = f"class {owner}" if owner else f"def {function}("
        assert wanted in (TESTS.parent / file).read_text(), name


def test_what_is_missing_fails_where_backends_are_required(suite: Path) -> None:
    assert "no such server is here (required by --require-backends)" in run(suite, "--require-backends")


def test_a_sample_keeps_the_order_and_covers_everything_in_time() -> None:
    samples = [Sample(str(seed)).of(range(10), 3) for seed in range(100)]
    assert all(len(sample) == 3 and sample == sorted(sample) for sample in samples)
    assert {case for sample in samples for case in sample} == set(range(10))


def test_a_report_has_what_a_failed_command_wrote(suite: Path) -> None:
    command = '["sh", "-c", "echo why >&2; exit 3"], check=True, capture_output=True'
    test = f"import subprocess\n\ndef test_command():\n    subprocess.run({command})\n"
    (suite / "tests" / "test_suite.py").write_text(test)
    assert "errors of the command" in run(suite)
