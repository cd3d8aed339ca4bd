"""Names of environment variables that the layers of a launch share."""

from __future__ import annotations

STDOUT = "RESOLUTE_STDOUT"
"""Names the pipe that takes the run's output, for layers whose own launcher would rewrite it."""
STDERR = "RESOLUTE_STDERR"
"""The same for errors."""
COLLECTIVE_KEY = "RESOLUTE_COLLECTIVE_KEY"
"""Secret of the workers' collectives."""
COLLECTIVE_PORTS = "RESOLUTE_COLLECTIVE_PORTS"
"""Their two ports on the first container."""
TERMINATION_GRACE = "RESOLUTE_TERMINATION_GRACE"
"""Seconds that the supervisor leaves between SIGTERM and SIGKILL; anyone who starts ranks takes less."""
C10D_PORT = "C10D_PORT"
"""Port on the first container where the ranks of torch.distributed meet."""
CONTAINER_PORTS = "RESOLUTE_CONTAINER_PORTS"
"""A port of each container, by rank, for frameworks whose workers all listen."""
SECRETS = "RESOLUTE_SECRETS_DIR"
USER_TOKEN_FILE = "RESOLUTE_TOKEN_FILE"  # noqa: S105 - the name of a variable
"""File with the token of the SDK in the run's scripts, replaced with every renewal of the lease."""
