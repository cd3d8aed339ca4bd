"""Calls DeepSpeed Autotune on a DeepSpeedTrial as its guide says, and waits for the search."""

import re
import subprocess
import sys
import time

from determined.experimental import client

if __name__ == "__main__":
    command = [sys.executable, "-m", "determined.pytorch.dsat", "random", "deepspeed.yaml", "tuned"]
    options = [
        "--max-trials",
        "3",
        "--zero-stages",
        "1",
        "2",
        "--metric",
        "throughput",
        "--start-profile-step",
        "1",
    ]
    options += ["--end-profile-step", "2", "--trials-per-random-config", "2", "--max-concurrent-trials", "1"]
    said = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(said)
    runner = client.get_experiment(int(re.search(r"Created experiment (\d+)", said)[1]))
    assert runner.wait(interval=0.5) == client.ExperimentState.COMPLETED
    assert runner.name == "(DSAT) tuned"
    (search,) = [
        e
        for e in client.list_experiments()
        if (e.config.get("description") or "").startswith(f"(#{runner.id}) generated")
    ]
    while not search.state.value.endswith("COMPLETED"):
        time.sleep(0.5)
        search.reload()
    trials = search.list_trials()
    assert len(trials) == 3, trials
    stages = {t.hparams["overwrite_deepspeed_args"].get("zero_optimization", {}).get("stage") for t in trials}
    print("stages", stages)
    checkpoint = runner.list_checkpoints()[0]
    files = checkpoint.resources
    assert any(name.endswith("best_ds_config.json") for name in files), files
