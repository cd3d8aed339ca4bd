"""Programs as users of the documented API wrote them, each submitted to a real cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded

TENSORFLOW = Path(sys.prefix) / "tensorflow"
"""Where `make distributed` puts TensorFlow: only the script that imports it finds it there."""

# As for the other distributed trainings: what DeepSpeed compiles is kept with the environment.
os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(Path(sys.prefix) / "torch-extensions"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with embedded(tmp_path_factory.mktemp("home") / "h", slots=2, PATH=path) as running:
        yield running
