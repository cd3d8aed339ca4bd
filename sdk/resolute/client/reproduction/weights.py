"""Reads the tensors of files in the formats that training libraries write."""

from __future__ import annotations

import struct
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Tensor = tuple[str, tuple[int, ...], bytes]
"""Data type, shape and bytes."""
_NO_WEIGHTS = {".cfg", ".csv", ".json", ".log", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"}
"""Suffixes of files that say something about a checkpoint. Weights may be in all others."""
_DESCRIPTIONS = ("torch.device", "torch.dtype", "torch.layout", "torch.memory_format")


def holds_weights(path: str) -> bool:
    """Whether a file may hold weights, by its name."""
    return Path(path).suffix not in _NO_WEIGHTS


def read_tensors(path: Path) -> dict[str, Tensor] | None:
    """Reads the tensors and numbers of a file, by name; None unless all that is in it is understood.

    Texts, whole numbers and dates count for nothing: names, counters and times of a run.

    A pickle is unpickled, which can run code: read only what a trial wrote whose code may run here.
    """
    try:
        pairs = list(_READERS[path.suffix](path))
    except Exception:  # noqa: BLE001 - what the libraries raise for a damaged or strange file is not documented
        return None
    tensors = dict(pairs)
    return tensors if len(tensors) == len(pairs) else None  # two of one name: one would not be compared


def _torch(path: Path) -> Iterator[tuple[str, Tensor]]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 - objects of other classes are in it
        content = torch.load(path, map_location="cpu", weights_only=False)
    yield from _tensors_in(content, "")


def _tensors_in(content: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    parts = _parts(content)
    if isinstance(parts, Mapping):
        for key, value in parts.items():
            yield from _tensors_in(value, f"{name}.{key}" if name else str(key))
    elif isinstance(parts, (list, tuple)):
        for number, value in enumerate(parts):
            yield from _tensors_in(value, f"{name}[{number}]")
    elif not _says_nothing(content):
        yield name, _value(content)


def _parts(content: Any) -> Any:
    """What an object consists of: a mapping or a sequence; other objects as they are."""
    if callable(getattr(content, "state_dict", None)):  # a whole module or optimizer
        return content.state_dict()
    if is_dataclass(content) and not isinstance(content, type):
        return {field.name: getattr(content, field.name) for field in fields(content)}
    return vars(content) if isinstance(content, (Namespace, SimpleNamespace)) else content


def _value(content: Any) -> Tensor:
    if hasattr(content, "detach"):
        import torch

        flat = content.detach().cpu().contiguous().reshape(-1)
        return str(content.dtype), tuple(content.shape), flat.view(torch.uint8).numpy().tobytes()
    if hasattr(content, "tobytes"):
        return _array(content)
    if isinstance(content, (float, complex)):
        number = complex(content)
        return type(content).__name__, (), struct.pack("<dd", number.real, number.imag)
    if isinstance(content, (bytes, bytearray)):
        return "bytes", (len(content),), bytes(content)
    raise TypeError(f"the weights of a {type(content)} are not known")


def _says_nothing(content: Any) -> bool:
    kind = f"{type(content).__module__}.{type(content).__qualname__}"
    return content is None or isinstance(content, (str, int, date, timedelta)) or kind in _DESCRIPTIONS


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
    if content.dtype.hasobject:
        raise TypeError("an array of objects holds addresses, which cannot be compared")
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
