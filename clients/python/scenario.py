"""clients/scenario.md in Python: ``python scenario.py DIRECTORY DOWNLOADS``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resolute.client import Client
from resolute.client.remote.experiments import Submission
from resolute.client.submission.packing import pack
from resolute.errors import ResoluteError


def main(directory: Path, downloads: Path) -> dict[str, Any]:
    """Does the scenario and returns what it found."""
    url = os.environ["RESOLUTE_URL"]

    # Sign in.
    anonymous = Client(url)
    cluster = Client(url, user=os.environ["RESOLUTE_USER"], password=os.environ["RESOLUTE_PASSWORD"])

    # Create an experiment from a directory.
    submission = Submission(config=(directory / "config.yaml").read_text())
    with pack(directory) as archive:
        number = cluster.services.experiments.create(submission, archive).experiment.id
    experiment = cluster.get_experiment(number)

    # Watch it to its end.
    state = experiment.state
    for change in cluster.services.experiments.watch(number):
        if change.experiment is not None:
            state = change.experiment.state

    # Read its best trial, a metric of it, and its log.
    smaller = experiment.config["searcher"]["smaller_is_better"]
    order = "best_validation" if smaller else "best_validation desc"
    best = next(iter(cluster.services.trials.list(number, order_by=order)))
    series = cluster.services.metrics.series(best.uuid, group="training", name="loss")
    log = [line.rstrip("\n") for line in cluster.get_trial(best.id).logs(follow=True, sources=["task"])]

    # Download its checkpoint, which verifies the digests.
    cluster.get_checkpoint(best.latest_checkpoint).download(str(downloads))
    files = cluster.services.checkpoints.get(best.latest_checkpoint).files

    # Get a typed error for each of five mistakes.
    repeated = Submission(
        config=f"{submission.config}\ndescription: another", request_id=submission.request_id
    )
    failures = {
        "noToken": reason_of(anonymous.list_experiments),
        "noSuchExperiment": reason_of(lambda: cluster.get_experiment(999_999)),
        "wrongConfig": reason_of(
            lambda: cluster.services.experiments.validate("searcher: {name: no_such_search}")
        ),
        "endedExperiment": reason_of(experiment.pause),
        "sameRequestId": reason_of(lambda: create_again(cluster, repeated)),
    }
    return {
        "experiment": number,
        "state": state.name,
        "trial": best.id,
        "best": best.best_validation.value if best.best_validation else None,
        "steps": [point.steps for point in series],
        "losses": [point.value for point in series],
        "log": log,
        "files": {file.path: file.digest for file in files if file.digest},
        "failures": failures,
    }


def create_again(cluster: Client, submission: Submission) -> None:
    """Creates an experiment without code."""
    with pack(None) as archive:
        cluster.services.experiments.create(submission, archive)


def reason_of(call: Callable[[], object]) -> str:
    """The reason why a call fails."""
    try:
        call()
    except ResoluteError as error:
        return error.reason
    raise AssertionError("the call should have failed")


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
