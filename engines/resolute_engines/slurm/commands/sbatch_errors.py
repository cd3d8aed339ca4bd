"""Classifies errors of ``sbatch``: the job is refused, has to wait, or may have been accepted."""

from __future__ import annotations

import re

from resolute.errors import FailedPreconditionError, QuotaError

_NO_ROOM = re.compile(
    r"MaxSubmit|GrpSubmit|job submit limit|unable to create job record|operation is presently disabled"
    r"|submissions disabled",
    re.IGNORECASE,
)
"""Limits that other jobs have used up, and times at which no job is taken."""
_OF_ONE_JOB = re.compile(r"PerJob|QOSMin|(QOS|Association)TimeLimit|MaxMemPerLimit", re.IGNORECASE)
"""Limits that a job is over by itself: Slurm names them before a sentence that is the same for all limits."""
_REFUSED = re.compile(
    r"invalid|unrecognized|unknown option|ambiguous|argument|denied|not permitted|not supported|unsupported"
    r"|unspecified error|violates|exceed|more (processors|tasks|nodes) (requested )?than|unable to open file"
    r"|configuration is not available|specification|not in this partition|not available in allocation"
    r"|no partition specified|dependency problem|only batch jobs|batch script|not found|cannot request"
    r"|memory required|too long|duplicate generic resource|breached",
    re.IGNORECASE,
)
"""What a job is refused for. A plugin of the site that refuses one leaves the error unspecified."""
_TRANSPORT = re.compile(
    r"slurm controller|communication (connection|shutdown)|connection refused|timed out|missing socket"
    r"|standby|message (send|receive|received|length)\b|entire message|zero (bytes|length)"
    r"|protocol authentication|munge|job credential|incompatible versions",
    re.IGNORECASE,
)
"""Messages about the connection to the controller; some share words with a refusal."""


def refusal(complaint: str) -> FailedPreconditionError | QuotaError | None:
    """Tells whether the output of ``sbatch`` means that there is no job.

    Args:
        complaint: What it wrote to its standard error.

    Returns:
        QuotaError for one that will be taken later, and FailedPreconditionError for one that never will;
        None where the controller did not answer, or answered anything else: it may have taken the job.
    """
    message = f"sbatch failed: {complaint}"
    if _TRANSPORT.search(complaint):
        return None
    if _NO_ROOM.search(complaint) and not _OF_ONE_JOB.search(complaint):
        return QuotaError(message)
    return FailedPreconditionError(message) if _REFUSED.search(complaint) else None
