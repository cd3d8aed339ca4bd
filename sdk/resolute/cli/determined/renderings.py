"""The table of all commands that print in Determined's format."""

from __future__ import annotations

from resolute.cli.determined import accounts, checkpoints, cluster, experiments, models, tasks, trials
from resolute.cli.display.rendering import Renderings

RENDERINGS: Renderings = {
    **experiments.RENDERINGS,
    **trials.RENDERINGS,
    **checkpoints.RENDERINGS,
    **models.RENDERINGS,
    **tasks.RENDERINGS,
    **cluster.RENDERINGS,
    **accounts.RENDERINGS,
}
"""By the words of the command."""
