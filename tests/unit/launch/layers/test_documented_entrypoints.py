"""Every usage line of the documentation of entrypoints, from the config to the plan; and its usage errors.

The text of a config goes through the shell that an entrypoint gets. A program of the name ``python3`` stands
first on its path and writes down what it was started with; those are the words that a layer is given.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from resolute_launch.exec import entrypoint
from resolute_launch.layers import autohorovod, deepspeed, horovod, torch_distributed
from resolute_launch.layers.arguments import UsageError
from resolute_launch.layers.plan import LaunchPlan
from resolute_launch.layers.topology import Topology

TWO = Topology(slots=(2,), python="py", port=3000)
LAYERS: dict[str, ModuleType] = {
    "determined.launch.horovod": horovod,
    "determined.launch.torch_distributed": torch_distributed,
    "determined.launch.deepspeed": deepspeed,
    "determined.launch.autohorovod": autohorovod,
}
UNDERNEATH = {
    "determined.launch.horovod": "py -m horovod.runner.launch ",
    "determined.launch.torch_distributed": "py -m torch.distributed.run ",
    "determined.launch.deepspeed": "py -m deepspeed.launcher.runner ",
    "determined.launch.autohorovod": "py -m horovod.runner.launch ",
}
each_layer = pytest.mark.parametrize("layer", list(UNDERNEATH))
MY_TRIAL = "py -m resolute_launch.harness model_def:MyTrial"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path on which ``python3`` tells its arguments, and ``dlprof`` runs what stands behind its options."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tell = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"
    (folder / "python3").write_text(tell)
    (folder / "dlprof").write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    for program in folder.iterdir():
        program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def words_of(text: str, path: str, **environment: str) -> list[str]:
    """What the interpreter is given that an entrypoint ends in."""
    argv = entrypoint.plan(text, python="py", distributed=True).argv
    assert argv == ("sh", "-c", text)
    said = subprocess.run(argv, env={"PATH": path, **environment}, capture_output=True, check=True).stdout
    words: list[str] = json.loads(said)
    return words


def planned(words: list[str]) -> LaunchPlan:
    """The plan of the layer that the words start, on one container of two slots."""
    flag, layer, *rest = words
    assert flag == "-m"
    module = LAYERS[layer]
    request = module.PARSER.parse(rest, python="py")
    if module is autohorovod:
        return autohorovod.plan(request, TWO, has_horovod=True)
    plan: LaunchPlan = module.plan(request, TWO)
    return plan


def worker_of(plan: LaunchPlan) -> str:
    """What each worker runs."""
    line = " ".join(plan.argv)
    return line[line.rindex("resolute_launch.wrap_rank") :].partition(" -- ")[2]


RDZV = "--rdzv_endpoint=$CUSTOM_RDZV_ADDR"
HOROVOD = "--fusion-threshold-mb 1 --cycle-time-ms 2"


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (f"python3 -m determined.launch.horovod {HOROVOD} -- --trial model_def:MyTrial", HOROVOD),
        (
            f"python3 -m determined.launch.torch_distributed {RDZV} -- --trial model_def:MyTrial",
            "--rdzv_endpoint=10.0.0.9:29500",
        ),
        ("python3 -m determined.launch.deepspeed --trial model_def:MyTrial", ""),
        ("dlprof --mode=simple python3 -m determined.launch.autohorovod --trial model_def:MNistTrial", ""),
    ],
)
def test_the_examples_of_the_page(path: str, text: str, overrides: str) -> None:
    words = words_of(text, path, CUSTOM_RDZV_ADDR="10.0.0.9:29500")
    plan = planned(words)
    line = " ".join(plan.argv)
    assert line.startswith(UNDERNEATH[words[1]])
    assert worker_of(plan) == f"py -m resolute_launch.harness {words[-1]}"
    # Behind what the layer says itself and before the program of the workers: so they win, and reach it.
    assert overrides in line[: line.index("resolute_launch.wrap_rank")]


def test_an_entirely_custom_command(path: str) -> None:
    assert words_of("python3 script.py arg1 arg2", path) == ["script.py", "arg1", "arg2"]


@each_layer
@pytest.mark.parametrize("overrides", ["", "--verbose -- ", "-- "])
@pytest.mark.parametrize(
    ("training", "worker"),
    [
        ("--trial model_def:MyTrial", MY_TRIAL),
        # "filepath:ClassName", as the page says it.
        ("--trial lib/model_def.py:MyTrial", "py -m resolute_launch.harness lib/model_def.py:MyTrial"),
        ("script.py arg1 --arg2 'with blank'", "py script.py arg1 --arg2 with blank"),
        ("python3 script.py arg1", "python3 script.py arg1"),
    ],
)
def test_the_grammar_of_every_layer(
    path: str, layer: str, overrides: str, training: str, worker: str
) -> None:
    plan = planned(words_of(f"python3 -m {layer} {overrides}{training}", path))
    assert worker_of(plan) == worker
    assert plan.argv.count("--verbose") == overrides.count("--verbose")


@each_layer
@pytest.mark.parametrize(
    ("arguments", "message", "exit_code"),
    [
        ("", "error: empty script is not allowed", 1),
        ("--verbose --", "error: empty script is not allowed", 1),
        ("--trial model_def:MyTrial script.py", "error: extra arguments to --trial: ['script.py']", 1),
        ("--verbose -- --trial model_def:MyTrial a", "error: extra arguments to --trial: ['a']", 1),
        ("--verbose -- --trial", "error: argument --trial: expected one argument", 2),
        ("--verbose --trial model_def:MyTrial", "error: unrecognized arguments: --verbose", 2),
    ],
)
def test_the_usage_errors_of_every_layer(
    path: str, layer: str, arguments: str, message: str, exit_code: int
) -> None:
    with pytest.raises(UsageError) as caught:
        planned(words_of(f"python3 -m {layer} {arguments}", path))
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == exit_code


def test_the_legacy_form_is_the_horovod_layer_around_the_class_on_several_slots() -> None:
    command = entrypoint.plan("model_def:TrialClass", python="py", distributed=True)
    assert command.argv[:3] == ("py", "-m", "resolute_launch.autohorovod")
    legacy = autohorovod.PARSER.parse(command.argv[3:], python="py")
    documented = horovod.PARSER.parse(["--trial", "model_def:TrialClass"], python="py")
    assert autohorovod.plan(legacy, TWO, has_horovod=True) == horovod.plan(documented, TWO)
    assert autohorovod.plan(legacy, Topology(python="py"), has_horovod=True).argv == documented.script


def test_the_legacy_form_on_one_slot_is_the_class_alone() -> None:
    command = entrypoint.plan("model_def:TrialClass", python="py", distributed=False)
    assert command.argv == ("py", "-m", "resolute_launch.harness", "model_def:TrialClass")
