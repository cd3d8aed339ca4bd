"""Every form of ``module:Class`` that configs of any age hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolute.trials.code.trial_class import PACKAGE, import_class


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a model definition, where an interpreter finds it; its modules are forgotten after."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_and_its_class(code: Path) -> None:
    (code / "seed_model_def.py").write_text("class CIFAR10Trial: pass\n")
    assert import_class("seed_model_def:CIFAR10Trial", code).__name__ == "CIFAR10Trial"


def test_no_module_is_the_package_that_the_directory_is(code: Path) -> None:
    (code / "__init__.py").write_text("from .parts import MNistTrial\n")
    (code / "parts.py").write_text("class MNistTrial: pass\n")
    assert import_class(":MNistTrial", code).__module__ == f"{PACKAGE}.parts"


def test_a_dotted_module_and_a_nested_object(code: Path) -> None:
    (code / "seed_lib").mkdir()
    (code / "seed_lib" / "__init__.py").touch()
    (code / "seed_lib" / "trial.py").write_text(
        "from .base import Base\nclass trial_classes:\n    class NestedTrial(Base): pass\n"
    )
    (code / "seed_lib" / "base.py").write_text("class Base: pass\n")
    found = import_class("seed_lib.trial:trial_classes.NestedTrial", code)
    assert found.__mro__[1].__module__ == "seed_lib.base"


def test_a_module_of_the_directory_may_import_its_neighbours_relatively(code: Path) -> None:
    (code / "seed_relative.py").write_text("from .seed_neighbour import VALUE\nclass Trial: value = VALUE\n")
    (code / "seed_neighbour.py").write_text("VALUE = 7\n")
    assert import_class("seed_relative:Trial", code).value == 7


def test_no_module_is_the_only_file_of_a_directory_that_is_no_package(code: Path) -> None:
    (code / "anything.py").write_text("class OnlyTrial: pass\n")
    (code / "const.yaml").write_text("name: x\n")
    assert import_class(":OnlyTrial", code).__module__ == f"{PACKAGE}.anything"


def test_no_module_among_several_files_means_none_of_them(code: Path) -> None:
    (code / "one.py").write_text("class Trial: pass\n")
    (code / "two.py").write_text("class Trial: pass\n")
    with pytest.raises(AttributeError, match="Trial"):
        import_class(":Trial", code)


def test_a_fault_within_the_module_is_not_hidden(code: Path) -> None:
    (code / "seed_faulty.py").write_text("import seed_missing_dependency\n")
    with pytest.raises(ModuleNotFoundError, match="seed_missing_dependency"):
        import_class("seed_faulty:Trial", code)
