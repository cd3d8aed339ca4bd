"""Names that the tables of docs/from-determined.md call the same are there, and tests or scripts use them."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import determined

ROOT = Path(__file__).resolve().parents[3]
TABLE = (ROOT / "docs/from-determined.md").read_text().partition("## The Python client")[0]
USED: Mapping[str, tuple[str, ...]] = {
    "det.Constant": (
        "unit/compat/test_documented_names.py",
        "unit/compat/test_older_names.py",
    ),
    "determined.util.calculate_batch_sizes": (
        "unit/compat/test_util.py",
        "unit/compat/test_older_names.py",
    ),
    "core_context.preempt": ("unit/compat/test_older_names.py",),
    "core_v2.init(config=core_v2.Config(…))": (
        "e2e/trainings/test_core_v2.py",
        "unit/compat/test_older_names.py",
    ),
    "determined.tensorboard.get_base_path": ("unit/compat/test_older_names.py",),
    "determined.tensorboard.BatchMetricWriter": (
        "unit/core/reports/test_tensorboard.py",
        "compat/scripts/tensorboard_writers/write.py",
    ),
    "determined.tensorboard.build": (
        "unit/core/reports/test_tensorboard.py",
        "compat/scripts/tensorboard_writers/write.py",
    ),
    "determined.horovod.hvd": ("unit/compat/test_older_names.py", "unit/compat/test_horovod_commands.py"),
    "determined.experimental.unmanaged": ("compat/scripts/unmanaged_0_23/unmanaged_script.py",),
    "determined.pytorch.lightning.LightningAdapter": ("unit/integrations/test_lightning_adapter.py",),
    "determined.lightning.experimental.DetLogger": ("compat/scripts/lightning_logger/train.py",),
    "PyTorchTrialContext.autocast_forward_pass": (
        "unit/pytorch/trial/test_context.py",
        "unit/compat/test_older_names.py",
    ),
    "TorchBatchProcessorContext.wrap_reducer": ("compat/scripts/batch_inference/inference.py",),
    "python3 -m determined.pytorch.dsat random\\|binary\\|asha": (
        "unit/compat/test_dsat.py",
        "compat/scripts/dsat/autotune.py",
    ),
    "classes of determined.pytorch.dsat": ("unit/compat/test_dsat.py",),
    "determined.keras.DeterminedCallback": ("compat/scripts/keras_callback/train.py",),
    "determined.keras.TFKerasTrial": (
        "support/training/keras_trials.py",
        "unit/integrations/test_keras_data.py",
        "wire/integrations/test_keras_trial.py",
    ),
}
"""The tests and scripts that use the names of a row, by its first one."""


def rows() -> dict[str, tuple[str, ...]]:
    """The names of each row that is the same, by the first one."""
    found = {}
    for line in TABLE.splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) == 4 and cells[2].strip().startswith("the same"):
            names = tuple(re.findall(r"`([^`]+)`", cells[1]))
            found[cells[1].strip().replace("`", "") if cells[1].strip()[0] != "`" else names[0]] = names
    return found


ROWS = rows()


def final_part(name: str) -> str:
    return re.split(r"[.\s]", re.sub(r"[(=\\].*", "", name).strip())[-1]


def words_of(source: str) -> set[str]:
    """The names that code uses: as names, attributes, imports, arguments and plain texts.

    Texts that are programs of their own count as code. Comments and docstrings do not count.
    """
    return set().union(*(words_of_node(node) for node in ast.walk(ast.parse(source))))


def words_of_node(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.keyword(arg=str(name)):
            return {name}
        case ast.alias(name=name):
            return set(name.split("."))
        case ast.ImportFrom(module=str(name)):
            return set(name.split("."))
        case ast.With():
            return {"with"}
        case ast.Constant(value=str(text)) if text.isidentifier():
            return {text}
        case ast.Constant(value=str(text)) if "import " in text:
            return words_of_program(text)
    return set()


def words_of_program(text: str) -> set[str]:
    try:
        return words_of(text)
    except SyntaxError:
        return set()


def test_words_of_comments_and_prose_do_not_count() -> None:
    source = 'import a.b\n"""Uses word."""\nc.d(e=1)  # f\nG = "import h; h.i"\n'
    assert words_of(source) == {"a", "b", "c", "d", "e", "G", "h", "i"}


def test_every_row_has_a_test() -> None:
    assert USED.keys() == ROWS.keys()


@pytest.mark.parametrize("row", sorted(USED))
def test_the_names_of_a_row_are_there_and_used(row: str) -> None:
    used = set().union(*(words_of((ROOT / "tests" / file).read_text()) for file in USED[row]))
    module = ""
    for name in ROWS[row]:
        assert final_part(name) in used, name
        if re.fullmatch(r"(det|determined)\.[\w.]+", name):
            module, _, _ = name.rpartition(".")
        elif not module or not re.fullmatch(r"[\w.]+", name):
            continue
        found: Any = determined
        path = name if name.startswith(("det.", "determined.")) else f"{module}.{name}"
        for part in path.split(".")[1:]:
            if not hasattr(found, part):
                importlib.import_module(f"{found.__name__}.{part}")
            found = getattr(found, part)
