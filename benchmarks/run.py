"""Runs benchmarks one after the other, each in an interpreter of its own: what ``make bench`` does.

    python benchmarks/run.py [NAME ...]

A NAME is a folder (``metrics``) or a file (``metrics/queries``); without any, all run. Every benchmark prints
ratios to a peer or a limit that it measures in the same run; absolute times say little.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = frozenset({"support"})
"""Folders that hold no benchmarks of their own."""


def benchmarks() -> list[str]:
    """Names of all benchmarks, in order."""
    return sorted(
        str(path.relative_to(HERE).with_suffix(""))
        for path in HERE.glob("*/*.py")
        if path.parent.name not in SHARED and not path.name.startswith("_") and runs_alone(path)
    )


def runs_alone(path: Path) -> bool:
    """Whether a file is a program, not a part of one."""
    return 'if __name__ == "__main__"' in path.read_text()


def chosen(wanted: list[str]) -> list[str]:
    """The benchmarks that the names stand for."""
    known = benchmarks()
    picked = [name for name in known if not wanted or name in wanted or name.split("/")[0] in wanted]
    if not picked:
        sys.exit(f"no benchmark is called {' or '.join(wanted)}; there are: {', '.join(known)}")
    return picked


def main() -> None:
    failed = []
    for name in chosen(sys.argv[1:]):
        sys.stdout.write(f"\n== {name}\n")
        sys.stdout.flush()
        if subprocess.run([sys.executable, HERE / f"{name}.py"], check=False).returncode != 0:
            failed.append(name)
    if failed:
        sys.exit(f"failed, or missed a limit: {', '.join(failed)}")


if __name__ == "__main__":
    main()
