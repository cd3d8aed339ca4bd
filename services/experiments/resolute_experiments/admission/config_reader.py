"""Completes submitted configs in a thread or in a worker process, so that other calls are not delayed.

Parsing YAML takes seconds for each megabyte, and aliases can expand a short text. Short configs without
aliases take milliseconds. All others are read in a process with limits, which is killed if its caller gives
up.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from resolute.api.experiments.v1 import trials_service_pb2
from resolute_config.layer import Layer
from resolute_experiments.admission.acceptance import Accepted, Admission
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.alerts.document import AlertsDocument, read_alerts
from resolute_experiments.store.config_policies import ConfigPolicies
from resolute_serving.context import actor
from resolute_serving.workers.pool import WorkerPool
from resolute_serving.workers.process import WorkerLimits

if TYPE_CHECKING:
    from resolute_experiments.admission.unmanaged_runs import UnmanagedRun
    from resolute_experiments.imports.configs import ImportedConfig

T = TypeVar("T")
SMALL_CHARACTERS = 16 * 1024
"""Longest config that is read in a thread."""


class ConfigReader:
    """Reads configs in threads and in worker processes, which ``close`` ends.

    Args:
        cluster_defaults: The lowest layer of the configs of runs outside of the cluster.
    """

    def __init__(self, cluster_defaults: dict[str, Any]) -> None:
        self._cluster_defaults = cluster_defaults
        self._workers = WorkerPool("config", processes=2, limits=WorkerLimits())

    async def whole(
        self,
        config_yaml: str,
        *,
        layers: Sequence[Layer],
        admission: Admission,
        enforced: Enforced,
        test_mode: bool,
    ) -> Accepted:
        """Makes a whole config, and checks it against what the cluster accepts.

        Args:
            config_yaml: What its author wrote.
            layers: What is below it, from the highest to the lowest.
            admission: What the cluster accepts.
            enforced: The policies that count for it.
            test_mode: Whether it only trains one batch.

        Raises:
            InvalidConfigError: Something in it is wrong; the error lists every fault.
            QuotaError: It takes too much time or memory.
        """
        await _load()
        from resolute_experiments.admission.preparation import prepare_config

        small = _is_small(config_yaml)
        return await self._run(
            prepare_config, config_yaml, tuple(layers), admission, enforced, test_mode, small=small
        )

    async def workspace(self, config_yaml: str, *, layers: Sequence[Layer]) -> str:
        """Reads the name of the workspace that a config will belong to; empty when it names none.

        Raises:
            InvalidConfigError: The config cannot be read.
            QuotaError: It takes too much time or memory.
        """
        await _load()
        from resolute_experiments.admission.preparation import workspace_of

        return await self._run(workspace_of, config_yaml, tuple(layers), small=_is_small(config_yaml))

    async def policies(
        self, document: str, *, above: ConfigPolicies | None, below: ConfigPolicies
    ) -> ConfigPolicies:
        """Reads policies as an admin wrote them; see ``read_policies``.

        Raises:
            InvalidArgumentError: Something in them is wrong; the error lists every fault.
            QuotaError: They take too much time or memory.
        """
        await _load()
        from resolute_experiments.admission.policy_documents import read_policies

        return await self._run(read_policies, document, above, below, small=_is_small(document))

    async def template(self, config_yaml: str, *, name: str) -> dict[str, Any]:
        """Reads a part of a config that is to be merged under others.

        Raises:
            InvalidConfigError: Something in it is wrong by itself; the error lists every fault.
            QuotaError: It takes too much time or memory.
        """
        await _load()
        from resolute_experiments.admission.preparation import check_template

        return await self._run(check_template, config_yaml, name, small=_is_small(config_yaml))

    async def alerts(self, document: str, *, earlier: AlertsDocument) -> AlertsDocument:
        """Reads alerts as an admin wrote them; see ``read_alerts``.

        Raises:
            InvalidArgumentError: Something in them is wrong; the error lists every fault.
            QuotaError: They take too much time or memory.
        """
        return await self._run(partial(read_alerts, earlier=earlier), document, small=_is_small(document))

    async def unmanaged_run(self, request: trials_service_pb2.BeginRunRequest) -> UnmanagedRun:
        """Reads what a script outside of the cluster says of its run.

        Raises:
            InvalidArgumentError: Something in it is wrong.
            QuotaError: It takes too much time or memory.
        """
        await _load()
        from resolute_experiments.admission.unmanaged_runs import read_unmanaged_run

        message = request.SerializeToString()
        small = len(message) <= SMALL_CHARACTERS
        return await self._run(read_unmanaged_run, message, self._cluster_defaults, small=small)

    async def imported(self, name: str, config_yaml: str) -> ImportedConfig:
        """Reads the config of an experiment that another cluster ran; see ``read_imported_config``.

        Raises:
            QuotaError: It takes too much time or memory.
        """
        await _load()
        from resolute_experiments.imports.configs import read_imported_config

        small = _is_small(config_yaml)
        return await self._run(read_imported_config, name, config_yaml, self._cluster_defaults, small=small)

    async def with_own_storage(self, content: dict[str, Any]) -> dict[str, Any]:
        """Lets the config of an imported experiment name the storage of this cluster."""
        await _load()
        from resolute_experiments.imports.configs import with_own_storage

        return await self._run(with_own_storage, content, self._cluster_defaults, small=True)

    async def close(self) -> None:
        """Ends the worker processes. Idempotent."""
        await self._workers.close()

    async def _run(self, work: Callable[..., T], *arguments: Any, small: bool) -> T:
        if small:
            return await asyncio.to_thread(work, *arguments)
        return await self._workers.run(work, *arguments, caller=actor())


def load_models() -> None:
    """Loads the models of configs, which takes long: before the first config, or once a cluster is served."""
    for module in ("admission.preparation", "admission.unmanaged_runs", "imports.configs"):
        importlib.import_module(f"resolute_experiments.{module}")


async def _load() -> None:
    await asyncio.to_thread(load_models)


def _is_small(text: str) -> bool:
    return len(text) <= SMALL_CHARACTERS and not ("&" in text and "*" in text)
