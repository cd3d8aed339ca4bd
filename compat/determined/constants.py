"""Ports, timeouts and paths that scripts read."""

from __future__ import annotations

import os

from resolute_launch.layers.horovod import (
    AUTOTUNE_LOG,
    GLOO_TIMEOUT_SECONDS,
    STARTUP_TIMEOUT_SECONDS,
)

MAX_SLOTS_PER_AGENT = 16
"""Slots of one machine that the ports below leave room for."""
DTRAIN_SSH_PORT = int(os.environ.get("DTRAIN_SSH_PORT", "12350"))
"""Port by which launch layers of several machines reach each other."""
INTER_TRAIN_PROCESS_COMM_PORT_1 = 12360
"""First port of the workers' collectives."""
INTER_TRAIN_PROCESS_COMM_PORT_2 = INTER_TRAIN_PROCESS_COMM_PORT_1 + MAX_SLOTS_PER_AGENT
"""Second port of the workers' collectives."""
HOROVOD_STARTUP_TIMEOUT_SECONDS = STARTUP_TIMEOUT_SECONDS
"""Seconds that Horovod's workers get to start."""
HOROVOD_GLOO_TIMEOUT_SECONDS = GLOO_TIMEOUT_SECONDS
"""Seconds that Horovod's workers wait for each other."""
HOROVOD_AUTOTUNE_LOG_FILEPATH = f"/tmp/{AUTOTUNE_LOG}"  # noqa: S108 - the documented place
"""Where Horovod writes what its tuning found."""
