"""TensorFlow's launch variable ``TF_CONFIG``, and the strategy for it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute.core.distributed.topology import Topology, from_tf_config

VARIABLE = "TF_CONFIG"


@dataclass(frozen=True)
class TensorFlowJob:
    """A job of several workers, read from ``TF_CONFIG``.

    Attributes:
        topology: The ranks of this worker.
        chief_host: Host of worker 0.
    """

    topology: Topology
    chief_host: str


def read(environ: Mapping[str, str]) -> TensorFlowJob | None:
    """The job of this worker; None where ``TF_CONFIG`` is not set, or lists no more than this process.

    Raises:
        ValueError: It is malformed.
    """
    text = environ.get(VARIABLE)
    if not text:
        return None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{VARIABLE} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{VARIABLE} must be a JSON object, not {text!r}")  # noqa: TRY004 - a text is malformed
    if not config.get("cluster"):
        return None
    topology = from_tf_config(config)
    host, _, _ = str(config["cluster"]["worker"][0]).rpartition(":")
    return TensorFlowJob(topology, host.strip("[]")) if topology.size > 1 else None


def choose_strategy(job: TensorFlowJob | None) -> Any:
    """A ``tf.distribute.Strategy`` for the job; with no job, for the GPUs of this process.

    Raises:
        ImportError: TensorFlow is not installed.
    """
    import importlib

    try:
        tf: Any = importlib.import_module("tensorflow")
    except ImportError as error:
        raise ImportError("from_tf_config needs TensorFlow: pip install tensorflow") from error
    if job is not None:
        return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
