"""All services of the platform, in the order of their start."""

from __future__ import annotations

from resolute_checkpoints.blueprint import BLUEPRINT as CHECKPOINTS
from resolute_experiments.blueprint import BLUEPRINT as EXPERIMENTS
from resolute_gateway.watch.service import BLUEPRINT as GATEWAY
from resolute_logs.blueprint import BLUEPRINT as LOGS
from resolute_metrics.blueprint import BLUEPRINT as METRICS
from resolute_preemption.blueprint import BLUEPRINT as PREEMPTION
from resolute_searcher.blueprint import BLUEPRINT as SEARCHER
from resolute_serving.server.service import Blueprint

SUPPORTING_SERVICES: tuple[Blueprint, ...] = (SEARCHER, METRICS, LOGS, CHECKPOINTS, PREEMPTION, GATEWAY)
"""The services that the experiments service leads."""
BLUEPRINTS: tuple[Blueprint, ...] = (*SUPPORTING_SERVICES, EXPERIMENTS)
"""All of them."""
