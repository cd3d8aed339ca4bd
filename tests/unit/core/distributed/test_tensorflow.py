"""What ``TF_CONFIG`` says. TensorFlow itself is not installed here: a namespace stands for it."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from resolute.core.distributed import DistributedContext
from resolute.core.distributed.tensorflow import TensorFlowJob, choose_strategy, read
from resolute.core.distributed.topology import Topology


def config(workers: list[str], index: int = 0) -> dict[str, str]:
    return {
        "TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
    }


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    devices: list[str] = []
    distribute = SimpleNamespace(
        MultiWorkerMirroredStrategy=lambda: "workers",
        MirroredStrategy=lambda: "gpus",
        get_strategy=lambda: "default",
    )
    fake = SimpleNamespace(
        distribute=distribute, config=SimpleNamespace(list_physical_devices={"GPU": devices}.get)
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    return devices


def test_several_workers_are_a_job_with_the_first_as_chief() -> None:
    assert read(config(["10.0.0.1:2222", "10.0.0.2:2222"], 1)) == TensorFlowJob(
        Topology(1, 2, 0, 1, 1, 2), "10.0.0.1"
    )


def test_an_ipv6_worker_is_understood() -> None:
    job = read(config(["[fd00::1]:2222", "[fd00::2]:2222"]))

    assert job is not None
    assert job.chief_host == "fd00::1"


@pytest.mark.parametrize("environ", [{}, {"TF_CONFIG": ""}, {"TF_CONFIG": "{}"}, config(["localhost:2222"])])
def test_no_other_worker_means_no_job(environ: dict[str, str]) -> None:
    assert read(environ) is None


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("[]", "must be a JSON object")])
def test_a_malformed_config_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"TF_CONFIG {message}"):
        read({"TF_CONFIG": text})


def test_the_strategy_fits_the_job(gpus: list[str]) -> None:
    assert choose_strategy(read(config(["a:1", "b:1"]))) == "workers"
    assert choose_strategy(None) == "default"
    gpus += ["GPU:0", "GPU:1"]
    assert choose_strategy(None) == "gpus"


@pytest.mark.usefixtures("gpus")
def test_a_single_worker_gets_a_context_and_a_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)

    context, strategy = DistributedContext.from_tf_config()

    assert (context.size, strategy) == (1, "default")


def test_without_tensorflow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "tensorflow", absent)

    with pytest.raises(ImportError, match="pip install tensorflow"):
        DistributedContext.from_tf_config()
