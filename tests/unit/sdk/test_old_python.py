"""An old Python gets a sentence, and no SyntaxError or ImportError from somewhere inside."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import resolute

OLD = "import sys; sys.version_info = (3, 9, 18, 'final', 0); import resolute"


def test_python_3_9_is_told_what_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", OLD], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Resolute needs Python 3.10 or newer" in done.stderr.splitlines()[-1]


def test_the_module_that_says_so_is_readable_by_an_old_python() -> None:
    assert resolute.__file__ is not None
    ast.parse(Path(resolute.__file__).read_text(), feature_version=(3, 7))
