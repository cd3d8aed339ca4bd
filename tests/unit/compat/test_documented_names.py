"""Scripts find what the documented API names, and find ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import pickle
import determined as det
import determined.constants, determined.errors, determined.util
import resolute, resolute.core, resolute.info, resolute.trial_errors

assert det.core.Context is resolute.core.Context and det._info is resolute.info
assert det.constants.INTER_TRAIN_PROCESS_COMM_PORT_2 == 12376
assert det.errors.InvalidCheckpointException is resolute.trial_errors.InvalidCheckpointException
assert issubclass(det.errors.WorkerError, Exception)
assert det.InvalidHP is resolute.InvalidHP and pickle.loads(pickle.dumps(det.InvalidHP)) is det.InvalidHP
assert det.Log(-4, -1) == {"type": "log", "minval": -4, "maxval": -1, "base": 10.0}
assert det.Integer(1, 9, count=3) == {"type": "int", "minval": 1, "maxval": 9, "count": 3}
import determined.tensorboard, determined.experimental as experimental
from determined.experimental import ModelSortBy, Checkpoint, OrderBy, TrialSortBy
assert det.Constant(value=1) == {"type": "const", "val": 1}
assert det.tensorboard.get_base_path({}) and det.horovod.hvd
assert det.Categorical(("a", 1)) == {"type": "categorical", "vals": ["a", 1]}
assert det.util.calculate_batch_sizes
import determined.common.api.errors
from determined.common.api import errors
from determined.errors import CheckpointNotFound
assert errors.NotFoundException is resolute.errors.NotFoundError
assert issubclass(errors.NotFoundException, errors.APIException)
assert issubclass(errors.MasterNotFoundException, errors.BadRequestException)
det._info._info = None
assert det.get_cluster_info() is None
"""


def test_documented_import_name_gives_this_platforms_objects_even_beside_another_package(
    tmp_path: Path,
) -> None:
    other = tmp_path / "determined"
    other.mkdir()
    (other / "__init__.py").write_text("raise ImportError('the other package was imported')\n")
    path = os.pathsep.join([str(ROOT / "compat"), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
