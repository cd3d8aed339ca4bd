"""Streams are bounded by user, by address and in all; runs and services come through whatever users open."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from resolute.errors import InvalidArgumentError, QuotaError, UnavailableError
from resolute_serving.bounds.streams import StreamCounts, StreamLimits
from resolute_serving.context import Anonymous, Role, ServiceAccount, TrialRun, User

ADA, BOB, EVE = (
    User(name, Role.EDITOR, user_id=number) for number, name in enumerate(("ada", "bob", "eve"), 1)
)
RUN = TrialRun(trial_id="t", run=1, experiment_id="e", allocation_id="t.1", workspace="w")
LIMITS = StreamLimits(total=5, of_address=3, of_user=2)
HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def counts() -> StreamCounts:
    return StreamCounts(LIMITS)


def test_a_user_has_so_many_streams_at_all_addresses_together(counts: StreamCounts) -> None:
    with counts.counted(ADA, HERE), counts.counted(ADA, THERE):
        with (
            pytest.raises(QuotaError, match=r"user ada has 2 .* RESOLUTE_STREAMS_OF_USER"),
            counts.counted(ADA, HERE),
        ):
            pass
        with counts.counted(BOB, HERE):
            pass
    with counts.counted(ADA, HERE), counts.counted(ADA, HERE):
        pass


def test_an_address_has_so_many_streams_of_all_users_together(counts: StreamCounts) -> None:
    with counts.counted(ADA, HERE), counts.counted(BOB, HERE), counts.counted(Anonymous(), HERE):
        with (
            pytest.raises(QuotaError, match=r"address 10.0.0.1 has 3 .* RESOLUTE_STREAMS_OF_ADDRESS"),
            counts.counted(BOB, HERE),
        ):
            pass
        with counts.counted(BOB, THERE):
            pass


def test_users_cannot_keep_runs_and_services_out(counts: StreamCounts) -> None:
    with ExitStack() as opened:
        for user, address in ((ADA, HERE), (ADA, HERE), (BOB, HERE), (BOB, THERE), (EVE, THERE)):
            opened.enter_context(counts.counted(user, address))
        with pytest.raises(UnavailableError, match="5 streams open, as many as RESOLUTE_STREAMS allows"):
            opened.enter_context(counts.counted(EVE, THERE))
        for _ in range(20):
            opened.enter_context(counts.counted(ServiceAccount("logs"), HERE))
        for _ in range(2):
            opened.enter_context(counts.counted(RUN, HERE))
        with pytest.raises(QuotaError, match="the run has 2 streams"):
            opened.enter_context(counts.counted(RUN, HERE))


def test_limits_are_read_from_the_environment() -> None:
    assert StreamLimits.from_environment({}) == StreamLimits()
    given = {"RESOLUTE_STREAMS": "7", "RESOLUTE_STREAMS_OF_ADDRESS": "6", "RESOLUTE_STREAMS_OF_USER": "5"}
    assert StreamLimits.from_environment(given) == StreamLimits(total=7, of_address=6, of_user=5)
    for wrong in ("0", "-1", "many", "1e3", "٣"):
        with pytest.raises(InvalidArgumentError, match="RESOLUTE_STREAMS_OF_USER is"):
            StreamLimits.from_environment({"RESOLUTE_STREAMS_OF_USER": wrong})
