"""Checkpoints are compared by the bits of their tensors, not by the bytes of their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from resolute.client.reproduction.comparison import ComparedFile, WeightComparison, compare_directories


@dataclass
class State:
    """What a script may save as it is."""

    scale: torch.Tensor
    note: str = ""


class Unknown:
    """What nobody knows the weights of."""

    def __init__(self, value: float) -> None:
        self.value = value


def linear(value: float) -> torch.nn.Module:
    module = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(module.weight, value)
    torch.nn.init.zeros_(module.bias)
    return module


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("expected", "found"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata.json").write_text(name)
    return tmp_path / "expected", tmp_path / "found"


def comparison(files: list[ComparedFile]) -> WeightComparison:
    return WeightComparison(steps=1, checkpoint="a", reproduced="b", files=tuple(files))


def test_files_with_equal_tensors_are_equal_whatever_else_is_in_them(pair: tuple[Path, Path]) -> None:
    for directory, moment in zip(pair, ("10:00", "10:05"), strict=True):
        weights = {"layer": {"weight": torch.arange(6.0).reshape(2, 3)}, "steps": [torch.tensor(3)]}
        torch.save({**weights, "saved at": moment}, directory / "model.pt")
        (directory / "note.txt").write_text(moment)
    found = {file.path: file for file in compare_directories(*pair)}
    assert found["model.pt"].equal
    assert (found["note.txt"].equal, found["note.txt"].weights) == (False, False)
    assert "metadata.json" not in found
    assert comparison(list(found.values())).equal


def test_tensors_that_differ_in_a_bit_a_shape_or_a_type_are_named(pair: tuple[Path, Path]) -> None:
    base = torch.tensor([1.0, 0.0])
    same = {"a": base, "b": base, "c": base, "d": base, "e": base}
    torch.save(same, pair[0] / "model.pt")
    changed = {
        "a": base,
        "b": torch.tensor([1.0, -0.0]),  # equal as numbers
        "c": base.reshape(2, 1),
        "d": base.to(torch.bfloat16),
    }
    torch.save(changed, pair[1] / "model.pt")
    (file,) = compare_directories(*pair)
    assert file.differing == ("b", "c", "d", "e")
    assert not comparison([file]).equal


def test_a_missing_or_unreadable_file_of_weights_is_a_difference(pair: tuple[Path, Path]) -> None:
    (pair[0] / "only.pt").write_bytes(b"")
    for directory in pair:
        (directory / "damaged.pt").write_text(directory.name)
    found = compare_directories(*pair)
    assert [(file.path, file.equal) for file in found] == [("damaged.pt", False), ("only.pt", False)]
    assert not comparison(found).equal


@pytest.mark.parametrize(
    ("make", "differing"),
    [
        (linear, ("weight",)),
        (lambda value: {"state": State(torch.tensor(value))}, ("state.scale",)),
        (lambda value: {"scale": value}, ("scale",)),
        (lambda value: {"state": Unknown(value), "other": torch.zeros(1)}, ()),
    ],
    ids=["module", "dataclass", "float", "unknown"],
)
def test_weights_in_other_objects_are_compared(
    pair: tuple[Path, Path], make: Any, differing: tuple[str, ...]
) -> None:
    for directory, value in zip(pair, (1.0, 2.0), strict=True):
        torch.save(make(value), directory / "model.pt")
    (file,) = compare_directories(*pair)
    assert file == ComparedFile(path="model.pt", equal=False, weights=True, differing=differing)


def test_equal_modules_are_equal_whatever_the_files_are(pair: tuple[Path, Path]) -> None:
    for directory in pair:
        torch.save(
            {"model": linear(1.0), "state": State(torch.ones(2), note=directory.name)}, directory / "a.pt"
        )
    (file,) = compare_directories(*pair)
    assert file.equal


def test_a_file_without_any_tensor_is_compared_by_its_bytes(pair: tuple[Path, Path]) -> None:
    for directory in pair:
        torch.save({"note": directory.name}, directory / "model.pt")
        (directory / "weights").write_text(directory.name)
    found = compare_directories(*pair)
    assert [(file.path, file.equal, file.weights) for file in found] == [
        ("model.pt", False, True),
        ("weights", False, True),
    ]


def test_checkpoints_without_files_are_not_equal() -> None:
    assert not comparison([]).equal
