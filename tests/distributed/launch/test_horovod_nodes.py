"""The parts of a Horovod job, as containers of one machine start them; their ranks need no Horovod."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.ports import free_port

JOB = ("-np", "3", "-H", "node0:2,node1:1", "--start-timeout", "20")


def start(node: int, port: int, *words: str) -> subprocess.Popen[str]:
    part = [sys.executable, "-m", "resolute_launch.layers.horovod_node", str(node), "127.0.0.1", str(port)]
    return subprocess.Popen([*part, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ends(parts: Iterable[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    found = []
    for part in parts:
        said, errors = part.communicate(timeout=60)
        found.append((part.returncode, said, errors))
    return found


def test_every_part_starts_its_ranks_with_what_the_words_ask_for(tmp_path: Path) -> None:
    port, last = free_port(), tmp_path / "last"
    tell = "echo $HOROVOD_RANK of $HOROVOD_SIZE, $HOROVOD_LOCAL_RANK here, $HOROVOD_CYCLE_TIME ms"
    tell += ", $HOROVOD_GLOO_IFACE"
    # As ranks of Horovod do: the first part is there until the last one has come.
    tell += f"; [ $HOROVOD_RANK = 2 ] && touch {last}; until [ -e {last} ]; do sleep 0.05; done"
    parts = [start(node, port, *JOB, "--cycle-time-ms", "2", "sh", "-c", tell) for node in (0, 1)]
    first, second = ends(parts)
    assert sorted(first[1].splitlines()) == ["0 of 3, 0 here, 2.0 ms, lo", "1 of 3, 1 here, 2.0 ms, lo"]
    assert second[1].splitlines() == ["2 of 3, 0 here, 2.0 ms, lo"]
    assert (first[0], second[0]) == (0, 0)


def test_when_a_rank_fails_the_others_of_its_container_are_ended() -> None:
    fail = "if [ $HOROVOD_RANK = 0 ]; then exit 3; fi; exec sleep 600"
    ((code, _, errors),) = ends([start(0, free_port(), *JOB, "sh", "-c", fail)])
    assert code == 3, errors


# A part that is asked to leave when the first of its ranks is up, and the second is not.
EARLY = """
import os, signal, sys, time
from pathlib import Path
from resolute_launch.layers import horovod_node as horovod_part

started, ready = [], Path(sys.argv.pop(1))

def start(*args, begin=horovod_part.start_child, **options):
    started.append(begin(*args, **options))
    while not (ready / str(len(started) - 1)).exists():
        time.sleep(0.02)
    if len(started) == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return started[-1]

horovod_part.start_child = start
sys.exit(horovod_part.main())
"""


def test_a_signal_that_comes_while_ranks_are_started_reaches_all_of_them(tmp_path: Path) -> None:
    save = f"trap 'exit 0' TERM; touch {tmp_path}/$HOROVOD_RANK; while :; do sleep 0.05; done"
    words = ["0", "127.0.0.1", str(free_port()), *JOB, "sh", "-c", save]
    done = subprocess.run(
        [sys.executable, "-c", EARLY, str(tmp_path), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_a_first_container_that_does_not_come_is_named() -> None:
    port = free_port()
    words = [*JOB[:-1], "1", "true"]
    ((code, _, errors),) = ends([start(1, port, *words)])
    assert code == 1
    assert f"did not serve the job's rendezvous at 127.0.0.1:{port} within 1 s" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mpi"], "reach other containers by themselves"),
        (["--min-np", "1"], "elastic jobs look for machines by themselves"),
        (["-H", "elsewhere:3"], "no rank of elsewhere:3 is left for container 0"),
    ],
)
def test_what_cannot_be_started_in_parts_is_refused(words: list[str], message: str) -> None:
    ((code, _, errors),) = ends([start(0, free_port(), *JOB, *words, "true")])
    assert code == 1
    assert message in errors
