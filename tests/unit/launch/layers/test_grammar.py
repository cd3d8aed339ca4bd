"""Every usage line of the launch layers, and every way to get one wrong."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters.cluster_info import cluster_of

from resolute_launch.layers import autohorovod, deepspeed, horovod, tensorflow, torch_distributed
from resolute_launch.layers.arguments import LaunchArgumentParser, UsageError

ALL = [torch_distributed.PARSER, horovod.PARSER, deepspeed.PARSER, autohorovod.PARSER]
each_layer = pytest.mark.parametrize("grammar", ALL, ids=lambda grammar: grammar.name.rpartition(".")[2])


def trial(name: str) -> tuple[str, ...]:
    return ("py", "-m", "resolute_launch.harness", name)


@each_layer
@pytest.mark.parametrize(
    ("line", "overrides", "script"),
    [
        ("--trial model_def:MyTrial", (), trial("model_def:MyTrial")),
        ("--trial=model_def:MyTrial", (), trial("model_def:MyTrial")),
        ("-- --trial model_def:MyTrial", (), trial("model_def:MyTrial")),
        (
            "--fusion-threshold-mb 1 --cycle-time-ms 2 -- --trial model_def:MyTrial",
            ("--fusion-threshold-mb", "1", "--cycle-time-ms", "2"),
            trial("model_def:MyTrial"),
        ),
        (
            "--rdzv_endpoint=10.0.0.1:7 -- --trial model_def:MyTrial",
            ("--rdzv_endpoint=10.0.0.1:7",),
            trial("model_def:MyTrial"),
        ),
        ("script.py --lr 0.1", (), ("py", "script.py", "--lr", "0.1")),
        ("python3 script.py --trial x", (), ("python3", "script.py", "--trial", "x")),
        ("--x -- script.py a", ("--x",), ("py", "script.py", "a")),
        ("-- script -- arg", (), ("script", "--", "arg")),
        ("-- ./run.sh 'a b'", (), ("./run.sh", "a b")),
    ],
)
def test_a_usage_line_is_understood(
    grammar: LaunchArgumentParser, line: str, overrides: tuple[str, ...], script: tuple[str, ...]
) -> None:
    request = grammar.parse(shlex.split(line), python="py")
    assert (request.overrides, request.script) == (overrides, script)


@each_layer
def test_words_before_the_first_separator_are_the_launchers_except_for_deepspeed(
    grammar: LaunchArgumentParser,
) -> None:
    """Its arguments are options, so that a script's own separator needs no other in front."""
    request = grammar.parse(["run.sh", "--", "arg"], python="py")
    if grammar is deepspeed.PARSER:
        assert (request.overrides, request.script) == ((), ("run.sh", "--", "arg"))
    else:
        assert (request.overrides, request.script) == (("run.sh",), ("arg",))


@each_layer
@pytest.mark.parametrize(
    ("line", "message", "exit_code"),
    [
        ("", "error: empty script is not allowed", 1),
        ("--x --", "error: empty script is not allowed", 1),
        ("--trial a:B train.py --lr 1", "error: extra arguments to --trial: ['train.py', '--lr', '1']", 1),
        ("--trial=a:B c", "error: extra arguments to --trial: ['c']", 1),
        ("--trial", "error: argument --trial: expected one argument", 2),
        ("--nproc 3 train.py", "error: unrecognized arguments: --nproc", 2),
    ],
)
def test_a_wrong_line_says_what_is_wrong(
    grammar: LaunchArgumentParser, line: str, message: str, exit_code: int
) -> None:
    with pytest.raises(UsageError) as caught:
        grammar.parse(shlex.split(line))
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == exit_code


def test_the_usage_names_the_words_of_the_launcher_underneath() -> None:
    assert horovod.PARSER.usage == (
        "usage: determined.launch.horovod [[HVD_OVERRIDES...] --] (--trial TRIAL)|(SCRIPT...)"
    )
    assert "[[TORCH_OVERRIDES...] --]" in torch_distributed.PARSER.usage
    assert "[[DEEPSPEED_ARGS...] --]" in deepspeed.PARSER.usage


def test_the_hidden_flag_asks_for_no_launcher_where_one_worker_runs() -> None:
    request = horovod.PARSER.parse(["--autohorovod", "--trial", "m:T"], python="py")
    assert request.auto
    assert request.script == trial("m:T")
    assert horovod.PARSER.parse(["--x", "--", "--autohorovod", "a"], python="py").auto
    for other in (torch_distributed.PARSER, deepspeed.PARSER):
        with pytest.raises(UsageError, match="unrecognized arguments: --autohorovod"):
            other.parse(["--autohorovod", "a"], python="py")


@pytest.mark.parametrize("grammar", [torch_distributed.PARSER, horovod.PARSER, deepspeed.PARSER])
@pytest.mark.parametrize("line", ["m:Base", "-- m:Base", "--x 1 -- m:Base"])
def test_a_trial_class_in_place_of_a_script_is_told_apart(grammar: LaunchArgumentParser, line: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean --trial m:Base\?"):
        grammar.parse(shlex.split(line))


def test_autohorovod_takes_a_trial_class_as_a_bare_word() -> None:
    assert autohorovod.PARSER.parse(["model_def:MNistTrial"], python="py").script == trial(
        "model_def:MNistTrial"
    )


@pytest.mark.parametrize(
    ("line", "port", "script"),
    [
        ("script.py --port 1", None, ("py", "script.py", "--port", "1")),
        ("python3 script.py arg", None, ("python3", "script.py", "arg")),
        ("-- ./run.sh -- a", None, ("./run.sh", "--", "a")),
        ("--port 4000 script.py", 4000, ("py", "script.py")),
        ("--port=4000 -- script a", 4000, ("script", "a")),
    ],
)
def test_tensorflow_takes_a_port_and_a_script(line: str, port: int | None, script: tuple[str, ...]) -> None:
    request = tensorflow.PARSER.parse(shlex.split(line), python="py")
    assert (request.port, request.script) == (port, script)


@pytest.mark.parametrize(
    ("line", "message", "exit_code"),
    [
        ("", "error: empty script is not allowed", 1),
        ("--", "error: empty script is not allowed", 1),
        ("--port 4000 --", "error: empty script is not allowed", 1),
        ("--port", "error: argument --port: expected one argument", 2),
        ("--port=x train.py", "error: argument --port: invalid port: 'x'", 2),
        ("--port 65536 train.py", "error: argument --port: invalid port: '65536'", 2),
        ("--trial a:B", "error: unrecognized arguments: --trial (the layer takes --port PORT alone", 2),
    ],
)
def test_a_wrong_line_for_tensorflow_says_what_is_wrong(line: str, message: str, exit_code: int) -> None:
    with pytest.raises(UsageError) as caught:
        tensorflow.PARSER.parse(shlex.split(line))
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == exit_code


def test_the_layer_of_tensorflow_is_a_command() -> None:
    command = [sys.executable, "-m", "resolute_launch.tensorflow"]
    wrong = subprocess.run([*command, "--port", "1"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert wrong.stderr.splitlines() == [
        "usage: determined.launch.tensorflow [--port PORT] [--] SCRIPT...",
        "error: empty script is not allowed",
    ]
    script = [*command, "sh", "-c", "echo $DET_CHIEF_IP ${TF_CONFIG-alone}; exit 3"]
    ran = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (3, "127.0.0.1 alone\n")


@pytest.mark.parametrize("layer", ["torch_distributed", "horovod", "deepspeed", "autohorovod"])
def test_a_layer_is_a_command(layer: str) -> None:
    command = [sys.executable, "-m", f"resolute_launch.{layer}"]
    wrong = subprocess.run([*command, "--trial", "a:B", "c"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert wrong.stderr.splitlines()[0].startswith(f"usage: determined.launch.{layer} [[")
    assert wrong.stderr.splitlines()[1] == "error: extra arguments to --trial: ['c']"
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    assert "--trial TRIAL  a Trial class" in helped.stdout


@pytest.mark.parametrize(
    "module",
    [
        "determined.launch.torch_distributed",
        "determined.launch.horovod",
        "determined.launch.deepspeed",
        "determined.launch.autohorovod",
        "determined.launch.tensorflow",
        "determined.launch.wrap_rank",
        "determined.launcher.wrap_rank",
        "determined.exec.harness",
        "determined.exec.launch",
        "determined.exec.pid_client",
        "determined.exec.pid_server",
        "determined.exec.prep_container",
    ],
)
def test_the_documented_names_reach_the_layers(module: str) -> None:
    helped = by_its_documented_name(module, "--help")
    assert helped.returncode == 0, helped.stderr
    assert module.rpartition(".")[2] in helped.stdout.splitlines()[0]
    if "exec" not in module:
        assert "SCRIPT..." in helped.stdout


def by_its_documented_name(
    module: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4] / "compat"), **variables}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_what_the_master_called_is_a_command_for_people() -> None:
    helped = by_its_documented_name("determined.exec.gc_checkpoints", "--help")
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith("Usage: resolute checkpoint gc [OPTIONS] EXPERIMENT")


def test_tensorboard_serves_nothing_outside_of_its_task() -> None:
    outside = by_its_documented_name("determined.exec.tensorboard")
    assert outside.returncode == 1
    assert "`resolute tensorboard start`" in outside.stderr


def test_a_container_is_prepared_by_its_supervisor_and_nowhere_else(tmp_path: Path) -> None:
    steps = ("--resources", "--rendezvous", "--proxy")
    outside = by_its_documented_name("determined.exec.prep_container", *steps)
    assert outside.returncode == 1
    assert "det experiment create" in outside.stderr
    cluster_of("127.0.0.1").write(tmp_path)
    inside = by_its_documented_name("determined.exec.prep_container", *steps, RESOLUTE_INFO_DIR=str(tmp_path))
    assert (inside.returncode, inside.stderr) == (0, "")
