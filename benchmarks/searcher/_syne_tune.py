"""Simulates a search with Syne Tune's simulator; runs in an interpreter that has it.

Started by ``simulators.py`` as ``_syne_tune.py TRIALS SLOTS``; prints one line of JSON. The space, the shape
of the curves, the rungs and the number of slots are those of ours.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

RUNGS = (1, 4, 16)


def blackbox() -> Any:
    """Curves that fall from 1 to what the hyperparameters are worth, at the lengths of the rungs."""
    import numpy as np
    from syne_tune.blackbox_repository.blackbox import Blackbox  # type: ignore[import-not-found,unused-ignore]
    from syne_tune.config_space import uniform  # type: ignore[import-not-found,unused-ignore]

    class Curves(Blackbox):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__(
                configuration_space={"x": uniform(0.0, 1.0), "y": uniform(0.0, 1.0)},
                fidelity_space={"length": uniform(1, RUNGS[-1])},
                objectives_names=["loss", "elapsed"],
            )

        def _objective_function(self, configuration: Any, fidelity: Any = None, seed: Any = None) -> Any:
            final = (configuration["x"] + configuration["y"]) / 2
            dice = random.Random(repr(sorted(configuration.items())))
            speed = 2.0 + 6.0 * dice.random()
            losses = [final + (1 - final) * math.exp(-speed * length / RUNGS[-1]) for length in RUNGS]
            return np.array([[loss, float(length)] for loss, length in zip(losses, RUNGS, strict=True)])

        @property
        def fidelity_values(self) -> Any:
            return np.array(RUNGS)

    return Curves()


def main() -> None:
    """Prints the processor time of a search."""
    trials, slots = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="resolute-bench-syne-tune-") as folder:
        # It writes results into a directory of its own.
        os.environ |= {"SYNETUNE_FOLDER": folder, "HOME": folder}
        from syne_tune import StoppingCriterion, Tuner  # type: ignore[import-not-found,unused-ignore]
        from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback  # type: ignore[import-not-found,unused-ignore]
        from syne_tune.blackbox_repository.simulated_tabular_backend import UserBlackboxBackend  # type: ignore[import-not-found,unused-ignore]
        from syne_tune.optimizer.baselines import ASHA  # type: ignore[import-not-found,unused-ignore]

        logging.disable(logging.CRITICAL)
        curves = blackbox()
        scheduler = ASHA(
            curves.configuration_space,
            metric="loss",
            time_attr="length",
            max_t=RUNGS[-1],
            grace_period=1,
            reduction_factor=4,
            random_seed=7,
        )
        tuner = Tuner(
            trial_backend=UserBlackboxBackend(blackbox=curves, elapsed_time_attr="elapsed"),
            scheduler=scheduler,
            stop_criterion=StoppingCriterion(max_num_trials_finished=trials),
            n_workers=slots,
            sleep_time=0,
            callbacks=[SimulatorCallback()],
            results_update_interval=1e9,
            print_update_interval=1e9,
            save_tuner=False,
        )
        began = time.process_time()
        tuner.run()
        took = time.process_time() - began
        finished = tuner.tuning_status.num_trials_finished
        sys.stdout.write(
            "\n" + json.dumps({"version": version("syne-tune"), "seconds": took, "trials": finished}) + "\n"
        )


if __name__ == "__main__":
    main()
