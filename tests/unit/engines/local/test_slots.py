from __future__ import annotations

import os
from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_engines.local.slots import detect_slots, list_gpus, usable_gpus
from resolute_engines.protocol import SlotKind

LISTING = """GPU 0: NVIDIA H200 (UUID: GPU-aaaaaaaa-0000-1111-2222-333333333333)
  MIG 1g.18gb     Device  0: (UUID: MIG-99999999-0000-1111-2222-333333333333)
GPU 1: NVIDIA H200 (UUID: GPU-bbbbbbbb-0000-1111-2222-333333333333)
"""
FIRST, SECOND = "GPU-aaaaaaaa-0000-1111-2222-333333333333", "GPU-bbbbbbbb-0000-1111-2222-333333333333"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver's tool as it answers on a machine with two GPUs; there is none here."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ntest \"$1\" = --list-gpus || exit 1\ncat <<'END'\n{LISTING}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tool


def test_gpus_are_slots_by_their_uuids(driver: Path) -> None:
    assert list_gpus() == [FIRST, SECOND]
    slots = detect_slots()
    assert [(slot.id, slot.kind, slot.device) for slot in slots] == [
        (0, SlotKind.GPU, FIRST),
        (1, SlotKind.GPU, SECOND),
    ]


def test_fewer_slots_than_gpus_are_the_first_gpus(driver: Path) -> None:
    assert [slot.device for slot in detect_slots(1)] == [FIRST]


def test_more_slots_than_gpus_are_shares_of_the_processor(driver: Path) -> None:
    assert {(slot.kind, slot.device) for slot in detect_slots(3)} == {(SlotKind.CPU, "")}


def test_only_gpus_that_this_process_may_use_are_given_away(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [(slot.id, slot.device) for slot in detect_slots()] == [(0, SECOND)]


@pytest.mark.parametrize(
    ("restriction", "usable"),
    [
        ("0,1", ["a", "b"]),
        ("1, 0", ["b", "a"]),
        ("GPU-x,MIG-y", ["GPU-x", "MIG-y"]),
        ("1,7,0", ["b"]),
        ("-1", []),
        ("", []),
    ],
)
def test_a_restriction_counts_as_in_cuda(restriction: str, usable: list[str]) -> None:
    assert usable_gpus(["a", "b"], {"CUDA_VISIBLE_DEVICES": restriction}) == usable


@pytest.mark.parametrize(
    "answer", ["exit 9", "echo No devices were found", "echo 'Failed to initialize'; exit 255"]
)
def test_without_a_working_driver_there_are_no_gpus(driver: Path, answer: str) -> None:
    driver.write_text(f"#!/bin/sh\n{answer}\n")
    assert list_gpus() == []
    assert {slot.kind for slot in detect_slots()} == {SlotKind.CPU}


def test_without_gpus_every_core_is_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert [slot.id for slot in detect_slots()] == list(range(len(os.sched_getaffinity(0))))
    assert len(detect_slots(5)) == 5


@pytest.mark.parametrize("wanted", [0, -1])
def test_a_machine_has_at_least_one_slot(wanted: int) -> None:
    with pytest.raises(InvalidArgumentError, match="at least one"):
        detect_slots(wanted)
