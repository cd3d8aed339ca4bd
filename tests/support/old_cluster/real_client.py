"""Lists a master by the real package `determined`; run by an interpreter that has it, of any release.

    python real_client.py ADDRESS

Prints one JSON object.
"""

import json
import sys
from typing import Any

from determined.common.api import bindings  # type: ignore[attr-defined, unused-ignore] # of the real package
from determined.experimental import Determined

client: Any = Determined(master=sys.argv[1], user="admin", password="")
session = client._session
experiments = bindings.get_GetExperiments(session, limit=50).experiments
trials = bindings.get_GetExperimentTrials(session, experimentId=1).trials
checkpoints = bindings.get_GetExperimentCheckpoints(session, id=1).checkpoints
lines = list(bindings.get_TrialLogs(session, trialId=1))
found = {
    "experiments": [[one.id, one.name, one.state.value] for one in experiments],
    "config": bindings.get_GetExperiment(session, experimentId=1).experiment.config["searcher"]["name"],
    "trials": [[one.id, one.state.value, one.hparams] for one in trials],
    "by_objects": [trial.id for trial in client.get_experiment(1).get_trials()],
    "checkpoints": sorted(one.uuid for one in checkpoints),
    "metadata": client.get_checkpoint(checkpoints[0].uuid).metadata if checkpoints else None,
    "lines": [line.message for line in lines],
    "workspaces": [one.name for one in bindings.get_GetWorkspaces(session).workspaces],
    "users": [one.username for one in bindings.get_GetUsers(session).users],
    "models": [one.name for one in client.get_models()],
}
if hasattr(bindings, "get_GetMetrics"):
    reports = list(client.get_trial(1).iter_metrics("training"))
    found["steps"] = [one.steps_completed for one in reports]
else:
    workloads = bindings.get_GetTrialWorkloads(session, trialId=1, limit=500).workloads
    found["steps"] = [one.training.totalBatches for one in workloads if one.training]
print(json.dumps(found))
