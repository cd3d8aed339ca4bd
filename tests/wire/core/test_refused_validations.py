"""Validations that a time-driven search refuses, from the script to the search's log and back."""

from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial, cluster

from resolute import core
from resolute.api.searcher.v1 import event_pb2, search_spec_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.rpc.channel import open_channel
from resolute.spool.report_writer import refusals_of


def validations_in_log(trial: Trial) -> list[event_pb2.LogEntry]:
    """The validations that the search took, with what it decided by each."""
    channel = open_channel(trial.services.address, token=trial.services.running.user_token)
    request = searcher.ListEventsRequest(search_id=trial.experiment_id, kinds=["validation_reported"])
    found = SearcherServiceStub(channel).ListEvents(request)
    channel.close()
    return list(found.entries)


def test_a_validation_without_the_time_metric_is_refused_and_the_others_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halving = search_spec_pb2.AsyncHalvingMethod(
        num_rungs=2, max_length=100, max_trials=1, divisor=4, time_driven=True
    )
    with cluster(tmp_path, max_length=100, halving=halving, time_metric="batches") as trial:
        trial.enter(monkeypatch)
        # All three must travel in one batch, so the sender is away while they are reported.
        trial.sender.stop()
        with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
            context.train.report_validation_metrics(1, {"loss": 0.5, "batches": 25})
            context.train.report_validation_metrics(2, {"loss": 0.4})
            context.train.report_validation_metrics(3, {"loss": 0.3, "batches": 100})
            trial.__post_init__()
            assert trial.sender.drain(30)

            context.train.report_training_metrics(4, {"loss": 0.2})
            context.train.flush(timeout=30)

        (refusal,) = refusals_of(trial.directory.spool)
        assert "validation 1 lacks 'batches'" in refusal
        first, third = validations_in_log(trial)
        taken = [entry.event.validation_reported for entry in (first, third)]
        assert [(report.metric, report.time_metric) for report in taken] == [(0.5, 25), (0.3, 100)]
        # The third reached the top rung, so the search stopped the trial.
        assert [operation.WhichOneof("kind") for operation in third.operations] == ["stop"]
        # The metrics service keeps what the search refused.
        assert trial.series("validation", "loss") == [(1, 0.5), (2, 0.4), (3, 0.3)]
