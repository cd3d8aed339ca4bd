"""What is recorded of values of many types; together with ``test_kinds_of_reports`` a hundred kinds."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import math
import sys
import types
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from resolute.spool.omissions import CountedWarnings
from resolute.spool.values import flatten

torch = pytest.importorskip("torch")


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: float
    y: float


RECORDED = {
    "numpy.float64": (np.float64(0.5), 0.5),
    "numpy.longdouble": (np.longdouble(0.5), 0.5),
    "numpy.int8": (np.int8(3), 3),
    "numpy.uint8": (np.uint8(3), 3),
    "numpy.float32 NaN": (np.float32("nan"), math.nan),
    "NaN": (math.nan, math.nan),
    "-infinity": (-math.inf, -math.inf),
    "-0.0": (-0.0, -0.0),
    "the smallest number": (5e-324, 5e-324),
    "the largest number": (sys.float_info.max, sys.float_info.max),
    "0": (0, 0),
    "False": (False, False),
    "None": (None, None),
    "empty text": ("", ""),
    "text beyond ASCII": ("é 🙂", "é 🙂"),
    "text with NUL": ("a\0b", "a\0b"),
    "NaN as text": ("NaN", "NaN"),
    "numpy.str_": (np.str_("a"), "a"),
    "Decimal": (decimal.Decimal("0.5"), 0.5),
    "Fraction": (fractions.Fraction(1, 2), 0.5),
    "NamedTuple": (Point(1, 2), [1, 2]),
    "Enum": (Color.RED, "RED"),
    "IntEnum": (Level.LOW, "LOW"),
    "memoryview": (memoryview(b"a"), [97]),
    "array of booleans": (np.array([True]), [True]),
    "array of two dimensions": (np.zeros((2, 2)), [[0.0, 0.0], [0.0, 0.0]]),
    "structured array": (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), [[1, 2.0]]),
    "masked array": (np.ma.masked_array([1.0], [True]), [None]),
    "array of text": (np.array("a"), "a"),
    "list of None": ([None], [None]),
    "list with NaN": ([math.nan], [math.nan]),
    "list with 2**70": ([2**70], [float(2**70)]),
    "tensor": (torch.tensor(0.5), 0.5),
    "tensor of bfloat16": (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
    "tensor with gradient": (torch.tensor(0.5, requires_grad=True), 0.5),
    "parameter": (torch.nn.Parameter(torch.tensor(0.5)), 0.5),
    "tensor of one dimension": (torch.tensor([1.0]), [1.0]),
    "tensor of a whole number": (torch.tensor(3), 3),
    "tensor of a boolean": (torch.tensor(True), True),
    "torch.Size": (torch.Size([1]), [1]),
}
NESTED = {
    "OrderedDict": collections.OrderedDict(a=1),
    "Counter": collections.Counter("a"),
    "defaultdict": collections.defaultdict(int, a=1),
    "mappingproxy": types.MappingProxyType({"a": 1}),
}
LEFT_OUT = {
    "Path": Path("a"),
    "datetime": dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc),
    "timedelta": dt.timedelta(1),
    "UUID": uuid.UUID(int=1),
    "range": range(2),
    "generator": (one for one in [1]),
    "deque": collections.deque([1]),
    "mapping with numbers as keys": {1: 2.0},
    "bytearray": bytearray(b"a"),
    "frozenset": frozenset([1]),
    "array of objects": np.array([object()]),
    "array of complex numbers": np.array([1j]),
    "list with a number of 401 digits": [10**400],
    "class": int,
    "module": math,
    "exception": ValueError("a"),
    "namespace": types.SimpleNamespace(a=1),
    "tensor of no device": torch.empty(1, device="meta"),
    "tensor of a complex number": torch.tensor(1j),
    "sparse tensor": torch.tensor([1.0]).to_sparse(),
    "torch.dtype": torch.float32,
    "torch.device": torch.device("cpu"),
}


@pytest.mark.parametrize("kind", RECORDED)
def test_a_value_is_recorded_as_plain_data(kind: str) -> None:
    value, plain = RECORDED[kind]
    said: list[str] = []
    assert repr(flatten({"odd": value}, CountedWarnings(said.append))) == repr({"odd": plain})
    assert not said


@pytest.mark.parametrize("kind", NESTED)
def test_a_mapping_is_recorded_by_dotted_names(kind: str) -> None:
    said: list[str] = []
    assert flatten({"odd": NESTED[kind]}, CountedWarnings(said.append)) == {"odd.a": 1}
    assert not said


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_value_is_left_out_with_one_line(kind: str) -> None:
    said: list[str] = []
    metrics: dict[str, Any] = {"odd": LEFT_OUT[kind], "good": 1.0}
    assert flatten(metrics, CountedWarnings(said.append)) == {"good": 1.0}
    (line,) = said
    assert line.startswith("left out of the reports: ")
    assert len(line) < 300
