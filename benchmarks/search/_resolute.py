"""The search on a cluster of its own: ``python _resolute.py HOME auto|off SEED``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
RESOLUTE = str(Path(sys.executable).with_name("resolute"))


def main() -> None:
    home, warm, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for name in [name for name in os.environ if name.startswith(("RESOLUTE_", "DET_"))]:
        del os.environ[name]
    os.environ["RESOLUTE_HOME"] = str(home)
    starting = subprocess.Popen(
        [RESOLUTE, "up", "--detach", "--slots", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    # Meanwhile: as long as the cluster starts, this process has nothing else to do.
    import yaml

    from resolute.client import Client

    _, said = starting.communicate()
    if starting.returncode:
        sys.exit(said.decode())
    up = time.time()
    try:
        config = yaml.safe_load((EXAMPLE / "adaptive.yaml").read_text())
        config["reproducibility"]["experiment_seed"] = seed
        if warm == "off":
            config["environment"]["warm_start"] = False
        with Client() as cluster:
            experiment = cluster.create_experiment(config, EXAMPLE)
            experiment.wait(interval=0.1)
            best = experiment.top_checkpoint()
            best.download(str(home / "best"))
            done = time.time()
            (validation,) = best.get_metrics("validation")
            trials = list(experiment.iter_trials())
            epochs = sum(trial.summary_metrics["validation_metrics"]["accuracy"]["count"] for trial in trials)
        result = {
            "up": up,
            "done": done,
            "best": validation.metrics["accuracy"],
            "trials": len(trials),
            "epochs": epochs,
        }
        sys.stdout.write(json.dumps(result) + "\n")
    finally:
        subprocess.run([RESOLUTE, "down"], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
