"""Sends alerts until it is killed: DATABASE KEY_FILE; what the operator says is in the environment."""

import asyncio
import os
import sys
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_experiments.alerts.delivery import AlertDelivery, Endpoints
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.context import ServiceContext
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier
from resolute_serving.sealing import Sealer

database = Database(sys.argv[1], name="experiments")
core = ServiceContext(
    database=database, notifier=Notifier(), clock=SYSTEM_CLOCK, cluster_id="c", preemption_timeout=60.0
)
endpoints = Endpoints(Sealer.open(Path(sys.argv[2])), AlertSettings.from_environment(os.environ))
print("sending", flush=True)
asyncio.run(AlertDelivery(core, endpoints).run())
