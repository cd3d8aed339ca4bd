from __future__ import annotations

from typing import Any

import pytest

from resolute.errors import InvalidArgumentError
from resolute_launch.exec.entrypoint import is_trial_class, plan


def test_a_list_is_run_as_it_is() -> None:
    words = ["python3", "-m", "determined.launch.torch_distributed", "--", "a b", 3]
    assert plan(words, python="py").argv == (
        "python3",
        "-m",
        "determined.launch.torch_distributed",
        "--",
        "a b",
        "3",
    )


@pytest.mark.parametrize(
    "text", ["python3 train.py", "nice -n 5 python3 x.py", "train.sh", "a=1:2 b", "http://x/y:z", "a:b:c"]
)
def test_text_is_run_by_a_shell(text: str) -> None:
    assert plan(text, python="py").argv == ("sh", "-c", text)


@pytest.mark.parametrize(
    "text", ["model_def:MyTrial", "pkg.mod:Outer.Trial", ":MnistTrial", " model_def:MyTrial "]
)
def test_one_word_with_a_colon_names_a_trial_class(text: str) -> None:
    assert is_trial_class(text.strip())
    assert plan(text, python="py").argv == ("py", "-m", "resolute_launch.harness", text.strip())


def test_a_trial_class_on_several_slots_gets_a_launcher_around_it() -> None:
    command = plan("model_def:MyTrial", python="py", distributed=True)
    assert command.argv == ("py", "-m", "resolute_launch.autohorovod", "--trial", "model_def:MyTrial")
    assert plan("python3 x.py", python="py", distributed=True).argv == ("sh", "-c", "python3 x.py")


@pytest.mark.parametrize("nothing", [None, "", "  ", [], (), 7, {"a": 1}])
def test_what_is_no_command_is_refused(nothing: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="give a command as text or as a list"):
        plan(nothing, python="py")
