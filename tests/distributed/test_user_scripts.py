"""Programs as users of the documented API wrote them, with libraries that only distributed tests install."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.backends import missing
from support.clusters.embedded import EmbeddedCluster, embedded
from support.clusters.user_scripts import LAUNCHED, run_script

TENSORFLOW = Path(sys.prefix) / "tensorflow"
BACKENDS = {"keras_callback": "torch", "keras_tensorflow": "tensorflow"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


@pytest.mark.parametrize("name", sorted(LAUNCHED))
def test_script_of_a_user(cluster: EmbeddedCluster, name: str) -> None:
    library = LAUNCHED[name]
    settings: tuple[str, ...] = ()
    if library == "tensorflow":
        if not (TENSORFLOW / library).is_dir():
            missing("TensorFlow is not installed: `make distributed` installs it")
        variables = [f"KERAS_BACKEND={BACKENDS[name]}", "TF_CPP_MIN_LOG_LEVEL=3", f"PYTHONPATH={TENSORFLOW}"]
        settings = (f"environment.environment_variables=[{', '.join(variables)}]",)
    elif importlib.util.find_spec(library) is None:
        missing(f"{library} is not installed: `make distributed` installs it")
    run_script(cluster, name, *settings)
