"""Programs as users of the documented API wrote them, each submitted as it is."""

from __future__ import annotations

import re
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import ExperimentState

SCRIPTS = Path(__file__).parents[2] / "compat" / "scripts"
LAUNCHED = {
    "dsat": "deepspeed",
    "deepspeed_trial": "deepspeed",
    "deepspeed_trainer": "deepspeed",
    "horovod_core": "horovod",
    "keras_callback": "tensorflow",
    "keras_tensorflow": "tensorflow",
}
"""Scripts that want what only `make distributed` installs, and what that is."""
NAMES = sorted(each.name for each in SCRIPTS.iterdir() if (each / "config.yaml").is_file())


def run_script(cluster: EmbeddedCluster, name: str, *settings: str) -> None:
    """Submits a script by `det e create`, and waits until it completes; a failure shows its log."""
    options = [word for setting in settings for word in ("--config", setting)]
    said = cluster.det("e", "create", "config.yaml", ".", *options, cwd=SCRIPTS / name).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    with cluster.client() as client:
        experiment = client.get_experiment(int(found[1]))

        def ended() -> bool:
            experiment.reload()
            return experiment.state.is_terminal

        wait_until(ended, what=f"{name} to end", seconds=550)
        logs = "".join(line for trial in experiment.list_trials() for line in trial.iter_logs())
        assert experiment.state is ExperimentState.COMPLETED, logs
