"""Results of programs that were written for Determined, and their table."""

from __future__ import annotations

from pathlib import Path

import pytest
from originals import Result, judge, programs, table


@pytest.mark.parametrize(
    ("exit_code", "output", "outcome"),
    [
        (0, "trial 1 COMPLETED", "ran"),
        (1, "ImportError: determined.deploy is not available: `resolute up` starts a cluster", "refused"),
        (2, "searcher.name: pbt was removed, use adaptive_asha", "refused"),
        (1, "ModuleNotFoundError: No module named 'mmdet'", "unknown"),
        (1, "resources.slots_per_trial: found 8; expected at most 2, the slots of this machine", "unknown"),
        (1, "Traceback\nKeyError: 'x'", "failed"),
    ],
)
def test_what_a_log_says_is_the_result(exit_code: int, output: str, outcome: str) -> None:
    assert judge("0.30", "p", exit_code=exit_code, output=output).outcome == outcome


def test_programs_are_configs_with_an_entrypoint(tmp_path: Path) -> None:
    (tmp_path / "0.30" / "hf").mkdir(parents=True)
    (tmp_path / "0.30" / "hf" / "const.yaml").write_text("entrypoint: python3 t.py\n")
    (tmp_path / "0.30" / "hf" / "environment.yml").write_text("dependencies: []\n")
    assert list(programs(tmp_path)) == [("0.30", tmp_path / "0.30" / "hf" / "const.yaml")]


def test_the_table_counts_by_release_and_names_what_did_not_run() -> None:
    told = table(
        [Result("0.30", "a", "ran"), Result("0.30", "b", "refused", "use x"), Result("0.38", "a", "ran")]
    )
    assert "| 0.30 | 1 of 2 | 1 | 0 | 0 |" in told
    assert "| 0.38 | 1 of 1 | 0 | 0 | 0 |" in told
    assert told.endswith("- 0.30 b: refused: use x")
