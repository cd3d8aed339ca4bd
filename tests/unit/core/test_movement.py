"""Signs of life that processes of a run leave for its supervisor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from resolute.contracts.run.shared_memory.movement import Movement, MovementTotal


def test_steps_and_phases_of_all_ranks_add_up(tmp_path: Path) -> None:
    first, second = Movement(tmp_path / "m", rank=0), Movement(tmp_path / "m", rank=1)
    assert MovementTotal.read(tmp_path / "m") == MovementTotal()
    first.step()
    second.begin_phase()
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(2, busy=True)
    second.advance()
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(3, busy=True)
    second.step()
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(4, busy=False)


def test_a_process_that_ended_while_busy_leaves_its_rank_idle_to_the_next_one(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from resolute.contracts.run.shared_memory.movement import Movement

Movement(Path({str(tmp_path / "m")!r}), rank=3).begin_phase()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(1, busy=True)
    again = Movement(tmp_path / "m", rank=3)
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(1, busy=False)
    again.step()
    assert MovementTotal.read(tmp_path / "m") == MovementTotal(2, busy=False), "no look misses it"


def test_what_is_no_plain_file_is_passed_over_and_does_not_block(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    Movement(folder, rank=0).step()
    os.mkfifo(folder / "rank1")
    (folder / "rank2").mkdir()
    (folder / "rank3").symlink_to("/dev/zero")
    program = f"""
from pathlib import Path
from resolute.contracts.run.shared_memory.movement import MovementTotal

print(MovementTotal.read(Path({str(folder)!r})).count)
"""
    read = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, stdout=subprocess.PIPE, text=True
    )
    assert read.stdout == "1\n"
