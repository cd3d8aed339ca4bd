"""Testing an entrypoint on this machine, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resolute.cli.main import run
from resolute.errors import InvalidConfigError
from resolute.runtime.sampling import sample

SPACE = {
    "fixed": 3,
    "const": {"type": "const", "val": [1, 2]},
    "width": {"type": "int", "minval": 2, "maxval": 4},
    "rate": {"type": "log", "minval": -4, "maxval": -2, "base": 10},
    "drop": {"type": "double", "minval": 0.1, "maxval": 0.2},
    "net": {"kind": {"type": "categorical", "vals": ["a", "b"]}, "nothing": None},
}


def test_every_kind_is_sampled_within_its_range() -> None:
    seen: set[int] = set()
    for seed in range(50):
        hparams = sample(SPACE, seed=seed)
        assert hparams["fixed"] == 3
        assert hparams["const"] == [1, 2]
        assert 1e-4 <= hparams["rate"] <= 1e-2
        assert 0.1 <= hparams["drop"] <= 0.2
        assert hparams["net"]["kind"] in {"a", "b"}
        assert hparams["net"]["nothing"] is None
        seen.add(hparams["width"])
    assert seen == {2, 3, 4}
    assert sample(SPACE, seed=1) == sample(SPACE, seed=1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "int", "minval": 1}, "hyperparameters.x lacks 'maxval', which the type 'int' needs"),
        ({"type": "adam"}, "hyperparameters.x.type is 'adam'; expected one of categorical, const"),
        ({"type": "int", "minval": 3, "maxval": 1}, "hyperparameters.x cannot be sampled"),
        ({"type": "double", "minval": "a", "maxval": 1}, "hyperparameters.x cannot be sampled"),
        ({"type": "categorical", "vals": []}, "hyperparameters.x cannot be sampled"),
    ],
)
def test_what_cannot_be_sampled_is_named(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        sample({"x": spec}, seed=0)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DET_MASTER", "should-not-reach-the-script")
    path = tmp_path / "code"
    path.mkdir()
    (path / "train.py").write_text(
        "import json, os, pathlib, sys\n"
        f"out = pathlib.Path({str(tmp_path)!r}) / 'seen.json'\n"
        "names = ('DET_HPARAMS', 'DET_EXPERIMENT_CONFIG', 'DET_TRIAL_SEED', 'DET_MASTER', 'EXTRA')\n"
        "seen = {name: os.environ.get(name) for name in names}\n"
        "out.write_text(json.dumps({**seen, 'cwd': os.getcwd(), 'files': sorted(os.listdir())}))\n"
        "sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)\n"
    )
    return path


def create(code: Path, config: str) -> int:
    path = code.parent / "config.yaml"
    path.write_text(config)
    return run(["e", "create", str(path), str(code), "--local", "--test-mode"], program="resolute")


def test_the_entrypoint_runs_in_a_copy_with_sampled_hyperparameters(
    code: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = (
        "entrypoint: python3 train.py\n"
        "hyperparameters: {lr: {type: log, minval: -3, maxval: -1}, width: 8}\n"
        "reproducibility: {experiment_seed: 5}\n"
        "environment: {environment_variables: [EXTRA=yes]}\n"
    )
    assert create(code, config) == 0
    seen = json.loads((code.parent / "seen.json").read_text())
    hparams = json.loads(seen["DET_HPARAMS"])
    assert hparams["width"] == 8
    assert 1e-3 <= hparams["lr"] <= 1e-1
    assert seen["DET_TRIAL_SEED"] == "5"
    assert seen["DET_MASTER"] is None
    assert seen["EXTRA"] == "yes"
    assert seen["files"] == ["train.py"]
    assert seen["cwd"] != str(code)
    assert not Path(seen["cwd"]).exists()
    assert json.loads(seen["DET_EXPERIMENT_CONFIG"])["hyperparameters"]["width"] == 8
    out = capfd.readouterr().out
    assert "running the entrypoint here with lr=" in out
    assert out.endswith("the local test passed\n")


def test_a_failing_entrypoint_fails_the_test(code: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert create(code, "entrypoint: [python3, train.py, '3']\n") == 1
    assert capfd.readouterr().err == "the local test failed: the entrypoint exited with 3\n"
    assert create(code, "entrypoint: 'kill -9 $$'\n") == 1
    assert capfd.readouterr().err == "the local test failed: the entrypoint exited with 137\n"


@pytest.mark.parametrize("config", ["name: x\n", "entrypoint: ''\n", "entrypoint: 3\n"])
def test_a_config_without_an_entrypoint_is_refused(
    code: Path, capfd: pytest.CaptureFixture[str], config: str
) -> None:
    assert create(code, config) == 1
    assert capfd.readouterr().err.startswith("error: entrypoint: found nothing to run")


def test_templates_need_a_cluster(code: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (code / "c.yaml").write_text("entrypoint: x\n")
    arguments = ["e", "create", str(code / "c.yaml"), str(code), "--local", "-t", "--template", "gpu"]
    assert run(arguments, program="resolute") == 2
    assert "--template needs a cluster" in capfd.readouterr().err
