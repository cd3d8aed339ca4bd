"""The largest sizes of requests, for each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
MAX_MESSAGE_BYTES = 4 * MIB
"""Most bytes of one message; gRPC refuses longer ones before anything is read."""
MAX_DEPTH = 100
"""Deepest nesting of messages; Protobuf refuses deeper ones when it reads them."""
MAX_BYTES_IN_PROGRESS = 768 * MIB
"""Most bytes of the requests that one server is working on."""
THREAD_BYTES = 32 * KIB
"""Longer messages are read in a thread, so that the event loop is not held up."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Bounds of the request of one call.

    Attributes:
        message_bytes: Most bytes of a message.
        elements: Most list items, map entries and nested messages of a message, over all levels.
        stream_bytes: Most bytes of all messages of a client stream.
    """

    message_bytes: int = MIB
    elements: int = 20_000
    stream_bytes: int = MAX_MESSAGE_BYTES


DEFAULT = RequestLimits()
"""Bounds of every call that is not in the table."""
_LARGE = RequestLimits(message_bytes=MAX_MESSAGE_BYTES)
"""For texts and files, which have bounds of their own."""
_BATCH = RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=2_000_000)
"""For columns of numbers and lists of files, which services check as they store them."""

_EXPERIMENTS = "/resolute.api.experiments.v1"
_CHECKPOINTS = "/resolute.api.checkpoints.v1.CheckpointsService"
_SEARCHER = "/resolute.api.searcher.v1.SearcherService"

LIMITS: Mapping[str, RequestLimits] = {
    f"{_EXPERIMENTS}.AccessService/Login": RequestLimits(message_bytes=16 * KIB, elements=10),
    f"{_EXPERIMENTS}.AccessService/LoginWithIdToken": RequestLimits(message_bytes=16 * KIB, elements=10),
    f"{_EXPERIMENTS}.AccessService/GetSignInMethods": RequestLimits(message_bytes=KIB, elements=10),
    f"{_EXPERIMENTS}.AccessService/RedeemSignInCode": RequestLimits(message_bytes=KIB, elements=10),
    f"{_EXPERIMENTS}.AccessService/GetVerificationKeys": RequestLimits(message_bytes=KIB, elements=10),
    f"{_EXPERIMENTS}.AccessService/UpdateUserSettings": RequestLimits(message_bytes=64 * KIB, elements=300),
    f"{_EXPERIMENTS}.ExperimentsService/CreateExperiment": _LARGE,
    f"{_EXPERIMENTS}.ExperimentsService/CreateExperimentInChunks": RequestLimits(
        message_bytes=MAX_MESSAGE_BYTES, stream_bytes=516 * MIB
    ),
    f"{_EXPERIMENTS}.ExperimentsService/UpdateExperiment": _LARGE,
    f"{_EXPERIMENTS}.TrialsService/UpdateTrial": _LARGE,
    f"{_EXPERIMENTS}.ExperimentsService/ValidateConfig": _LARGE,
    f"{_EXPERIMENTS}.ContinuationService/ContinueExperiment": _LARGE,
    f"{_EXPERIMENTS}.ContinuationService/ContinueTrial": _LARGE,
    f"{_EXPERIMENTS}.ContinuationService/ForkExperiment": _LARGE,
    f"{_EXPERIMENTS}.ClusterService/SetTemplate": _LARGE,
    f"{_EXPERIMENTS}.AlertsService/SetAlerts": RequestLimits(message_bytes=128 * KIB, elements=10),
    f"{_EXPERIMENTS}.SecretsService/SetSecret": RequestLimits(message_bytes=64 * KIB, elements=10),
    f"{_EXPERIMENTS}.BoardsService/SetBoard": RequestLimits(message_bytes=128 * KIB, elements=10),
    f"{_EXPERIMENTS}.ConfigPoliciesService/SetConfigPolicies": RequestLimits(
        message_bytes=128 * KIB, elements=10
    ),
    f"{_EXPERIMENTS}.TrialsService/BeginRun": RequestLimits(message_bytes=2 * MIB, elements=50_000),
    # 200 series of 500 periods, which the service checks.
    f"{_EXPERIMENTS}.AllocationsService/ReportMachineUsage": RequestLimits(elements=110_000),
    f"{_EXPERIMENTS}.ImportsService/ImportExperiment": RequestLimits(
        message_bytes=MAX_MESSAGE_BYTES, stream_bytes=516 * MIB
    ),
    f"{_EXPERIMENTS}.ImportsService/ImportTrials": _BATCH,
    f"{_CHECKPOINTS}/ImportCheckpoints": _BATCH,
    "/resolute.api.checkpoints.v1.ModelsService/ImportModel": _LARGE,
    "/resolute.api.checkpoints.v1.MediaService/IngestMedia": _BATCH,
    f"{_CHECKPOINTS}/ReuseFiles": _BATCH,
    f"{_CHECKPOINTS}/PresignUploads": _BATCH,
    f"{_CHECKPOINTS}/CommitCheckpoint": _BATCH,
    f"{_CHECKPOINTS}/CommitCheckpointInChunks": RequestLimits(
        message_bytes=MAX_MESSAGE_BYTES, elements=2_000_000, stream_bytes=128 * MIB
    ),
    f"{_CHECKPOINTS}/PresignDownloads": _BATCH,
    f"{_CHECKPOINTS}/PreviewRetention": _BATCH,
    f"{_CHECKPOINTS}/ApplyRetention": _BATCH,
    f"{_CHECKPOINTS}/AssignIds": _BATCH,
    f"{_SEARCHER}/CreateSearch": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=500_000),
    f"{_SEARCHER}/PreviewSearch": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=500_000),
    f"{_SEARCHER}/SimulateSearch": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=500_000),
    f"{_SEARCHER}/ReportEvents": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=100_000),
    f"{_SEARCHER}/ReportValidations": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=100_000),
    f"{_SEARCHER}/PostOperations": RequestLimits(message_bytes=MAX_MESSAGE_BYTES, elements=200_000),
    "/resolute.api.metrics.v1.MetricsService/IngestReports": _BATCH,
    "/resolute.api.logs.v1.LogsService/IngestLines": _BATCH,
}
"""Bounds by the full name of a call."""


def limits_of(method: str) -> RequestLimits:
    """Returns the bounds of a call.

    Args:
        method: Full name, ``/package.Service/Method``.
    """
    return LIMITS.get(method, DEFAULT)
