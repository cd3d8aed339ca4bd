"""Warm starts that nobody asked for: only where nothing shows that a fork could differ."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from wire.warm.runs import AUTO, SCRIPT, STARTS_A_THREAD, WARM, start

from resolute_launch.warm.code_changes import changed_variables
from resolute_launch.warm.entrypoints import CannotForkError

SAID = (
    "warm start: this experiment's runs are forks of a process that has imported their modules;"
    " environment.warm_start: false starts each one anew"
)
PARENT = "import os\nprint(os.getppid())"
SINGLE = {**AUTO, "searcher": {"name": "single", "metric": "loss"}}


def test_runs_of_a_search_are_forks_and_say_so_once(folder: Path) -> None:
    runs = [start(folder, name, SCRIPT, {"train.py": PARENT}, config=AUTO) for name in ("first", "second")]
    assert [run.finish() for run in runs] == [0, 0]
    parents = {int(run.text()) for run in runs}
    assert len(parents) == 1
    assert os.getpid() not in parents
    assert [run.said for run in runs] == [[SAID], []]


COLD = {
    "shell": ("python3 train.py && true", ""),
    "thread": (SCRIPT, "import starts_a_thread"),
    "asked": (SCRIPT, "import asks"),
    "before": (SCRIPT, "import os\nos.environ['BACKEND'] = 'torch'\nimport asks_for_backend"),
    "inside": (SCRIPT, "import asks_for_backend\ndef f():\n    import os\n    os.environ['BACKEND'] = 'b'"),
}
LIBRARY = {
    "starts_a_thread": STARTS_A_THREAD,
    "asks": "import os\nos.environ.get('DET_SESSION_TOKEN')",
    "asks_for_backend": "import os\nBACKEND = os.environ.get('BACKEND', 'none')",
}


@pytest.mark.parametrize("why", sorted(COLD))
def test_what_may_differ_starts_cold_and_says_nothing(folder: Path, why: str) -> None:
    entrypoint, text = COLD[why]
    library = folder / "library"
    library.mkdir()
    for name, source in LIBRARY.items():
        (library / f"{name}.py").write_text(source)
    files = {"train.py": f"{text}\nimport sys\nprint('resolute_launch.warm' in sys.modules)"}
    for name in ("first", "second"):
        run = start(folder, name, entrypoint, files, environ={"PYTHONPATH": str(library)}, config=AUTO)
        assert (run.finish(), run.text(), run.said) == (0, "False\n", [])


def test_a_single_trial_starts_no_parked_process(folder: Path) -> None:
    run = start(folder, "alone", SCRIPT, {"train.py": ""}, config=SINGLE)
    assert (run.finish(), run.said) == (0, [])
    assert not list((folder / "warm").glob("*/lock"))


def test_what_functions_import_is_not_learned_where_they_change_variables(folder: Path) -> None:
    changes = "def f():\n    os.environ['A'] = 'b'\n    import wave\nf()"
    script = f"import os, sys; print('wave' in sys.modules)\n{changes}"
    texts = []
    for name in ("first", "second"):
        run = start(folder, name, SCRIPT, {"train.py": script}, config=AUTO)
        assert run.finish() == 0
        texts.append(run.text())
    assert texts == ["False\n", "False\n"]


CHANGES = {
    "os.environ.get('A'); b = os.environ['B']; 'C' in os.environ; env = {**os.environ}; dict(os.environ)": [],
    "def f(): os.environ.setdefault('A', '1'); os.environ['B'] = '2'; del os.environ['C']": ["A", "B", "C"],
    "if __name__ == '__main__': os.environ['A'] = '1'": ["A"],
}


@pytest.mark.parametrize("text", sorted(CHANGES))
def test_variables_that_code_changes_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(f"import os\n{text}\n")
    assert changed_variables(tmp_path) == CHANGES[text]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\nos.environ['A'] = '1'", "before it imports"),
        ("import os\nclass A:\n    os.environ.update(B='1')", "before it imports"),
        ("from dotenv import load_dotenv\nload_dotenv()", "before it imports"),
        ("import os\ndef f(name): os.environ[name] = '1'", "does not name"),
        ("import os\ndef f(): change(os.environ)", "does not name"),
        ("def f(:", "cannot be read"),
    ],
)
def test_code_that_changes_more_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "train.py").write_text(text)
    with pytest.raises(CannotForkError, match=reason):
        changed_variables(tmp_path)


@pytest.mark.parametrize("base", [AUTO, WARM])
def test_a_run_whose_secrets_are_variables_starts_cold(folder: Path, base: dict[str, Any]) -> None:
    config = {**base, "environment": {**base["environment"], "secrets": ["HUB=hub"]}}
    files = {"train.py": "import sys\nprint('resolute_launch.warm' in sys.modules)"}
    run = start(folder, "given", SCRIPT, files, environ={"HUB": "a token of a hub"}, config=config)
    said = "warm start: this experiment's runs start cold: its secrets are variables; name them alone, and"
    assert (run.finish(), run.text()) == (0, "False\n")
    assert run.said == ([] if base is AUTO else [f"{said} read their files"])
