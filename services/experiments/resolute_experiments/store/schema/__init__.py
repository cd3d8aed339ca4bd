"""The tables of the experiments service. UUIDs are keys between services; numbers are for people."""

from resolute_experiments.store.schema.accounts import (
    audit,
    board_versions,
    boards,
    openid_identities,
    projects,
    secrets,
    tokens,
    user_settings,
    users,
    workspace_roles,
    workspaces,
)
from resolute_experiments.store.schema.alerts import alert_deliveries, alert_documents
from resolute_experiments.store.schema.cluster import (
    config_policies,
    disabled_slots,
    templates,
    wait_reasons,
)
from resolute_experiments.store.schema.experiments import (
    continuations,
    definition_chunks,
    experiment_sources,
    experiments,
    outbox,
)
from resolute_experiments.store.schema.metadata import IDEMPOTENCY_KEYS, metadata
from resolute_experiments.store.schema.runs import (
    containers,
    environments,
    machine_usage,
    runs,
)
from resolute_experiments.store.schema.trials import (
    trial_transitions,
    trials,
    validation_cursor,
)

__all__ = [
    "IDEMPOTENCY_KEYS",
    "alert_deliveries",
    "alert_documents",
    "audit",
    "board_versions",
    "boards",
    "config_policies",
    "containers",
    "continuations",
    "definition_chunks",
    "disabled_slots",
    "environments",
    "experiment_sources",
    "experiments",
    "machine_usage",
    "metadata",
    "openid_identities",
    "outbox",
    "projects",
    "runs",
    "secrets",
    "templates",
    "tokens",
    "trial_transitions",
    "trials",
    "user_settings",
    "users",
    "validation_cursor",
    "wait_reasons",
    "workspace_roles",
    "workspaces",
]
