"""Reads the tensors of files in the formats that training libraries write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Tensor = tuple[str, tuple[int, ...], bytes]
"""Data type, shape and bytes."""


def holds_weights(path: str) -> bool:
    """Whether a file has the name of one with tensors."""
    return Path(path).suffix in _READERS


def read_tensors(path: Path) -> dict[str, Tensor] | None:
    """Reads the tensors of a file, by name; None if it cannot be read here.

    A pickle is unpickled, which can run code: read only what a trial wrote whose code may run here.
    """
    try:
        return dict(_READERS[path.suffix](path))
    except Exception:  # noqa: BLE001 - what the libraries raise for a damaged or strange file is not documented
        return None


def _torch(path: Path) -> Iterator[tuple[str, Tensor]]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 - objects of other classes are in it
        content = torch.load(path, map_location="cpu", weights_only=False)
    yield from _tensors_in(content, "")


def _tensors_in(content: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _tensors_in(value, f"{name}.{key}" if name else str(key))
    elif isinstance(content, (list, tuple)):
        for number, value in enumerate(content):
            yield from _tensors_in(value, f"{name}[{number}]")
    elif hasattr(content, "detach"):
        import torch

        flat = content.detach().cpu().contiguous().reshape(-1)
        yield name, (str(content.dtype), tuple(content.shape), flat.view(torch.uint8).numpy().tobytes())
    elif hasattr(content, "tobytes"):
        yield name, _array(content)


def _safetensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    from safetensors.torch import load_file

    yield from _tensors_in(load_file(path), "")


def _numpy(path: Path) -> Iterator[tuple[str, Tensor]]:
    import numpy as np

    content = np.load(path)
    yield from _tensors_in(dict(content) if hasattr(content, "files") else content, "")


def _hdf5(path: Path) -> Iterator[tuple[str, Tensor]]:
    import h5py

    with h5py.File(path) as file:
        names: list[str] = []
        file.visit(names.append)
        for name in names:
            if isinstance(file[name], h5py.Dataset):
                yield name, _array(file[name][()])


def _keras(path: Path) -> Iterator[tuple[str, Tensor]]:
    import tempfile
    import zipfile

    with tempfile.TemporaryDirectory(prefix="resolute-") as scratch, zipfile.ZipFile(path) as archive:
        yield from _hdf5(Path(archive.extract("model.weights.h5", scratch)))


def _array(content: Any) -> Tensor:
    return str(content.dtype), tuple(content.shape), content.tobytes()


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, Tensor]]]] = {
    ".pt": _torch,
    ".pth": _torch,
    ".ckpt": _torch,
    ".bin": _torch,
    ".safetensors": _safetensors,
    ".npz": _numpy,
    ".npy": _numpy,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".keras": _keras,
}
