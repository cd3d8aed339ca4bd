"""Information for a process about its cluster and its trial, under the documented names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.runtime.connection import Connection
from resolute.runtime.local_task import LocalTask

DIRECTORY_VARIABLE = "RESOLUTE_INFO_DIR"
"""Names the directory of the info files in the environment of the entrypoint."""
DEFAULT_DIRECTORY = Path("/run/determined/info")
TRIAL = "TRIAL"


class TrialInfo:
    """The trial that this process is part of.

    Attributes:
        trial_id: Number of the trial.
        experiment_id: Number of its experiment.
        trial_seed: Seed for its random numbers.
        hparams: Its hyperparameters.
        skipped_batches: Ranges of batches to leave out because the [guard](../launch.md#spikes) of its
            experiment resumed from a checkpoint before them: the number of the first batch, counted from 0
            over all runs, and of the one after the last.

    Examples:
        A test of a script that reads ``get_cluster_info().trial`` can make one:

        >>> import resolute
        >>> of = {"experiment_id": 1, "trial_seed": 42, "config": {}, "steps_completed": 0, "trial_run_id": 1}
        >>> trial = resolute.TrialInfo(7, hparams={"lr": 0.1}, **of)
        >>> trial.hparams["lr"]
        0.1
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the documented constructor
        self,
        trial_id: int,
        experiment_id: int,
        trial_seed: int,
        hparams: dict[str, Any],
        config: dict[str, Any],
        steps_completed: int,
        trial_run_id: int,
        debug: bool = False,
        inter_node_network_interface: str | None = None,
        skipped_batches: Sequence[Sequence[int]] = (),
    ) -> None:
        self.trial_id = trial_id
        self.experiment_id = experiment_id
        self.trial_seed = trial_seed
        self.hparams = hparams
        self._config = config
        self._steps_completed = steps_completed
        self._trial_run_id = trial_run_id
        self._debug = debug
        self._inter_node_network_interface = inter_node_network_interface
        self.skipped_batches = [(int(first), int(end)) for first, end in skipped_batches]

    @classmethod
    def _from_env(cls) -> TrialInfo:
        config = json.loads(os.environ["DET_EXPERIMENT_CONFIG"])
        return cls(
            trial_id=int(os.environ["DET_TRIAL_ID"]),
            experiment_id=int(os.environ["DET_EXPERIMENT_ID"]),
            trial_seed=int(os.environ["DET_TRIAL_SEED"]),
            hparams=json.loads(os.environ["DET_HPARAMS"]),
            config=config,
            steps_completed=int(os.environ.get("DET_STEPS_COMPLETED", "0")),
            trial_run_id=int(os.environ["DET_TRIAL_RUN_ID"]),
            debug=bool(config.get("debug", False)),
            inter_node_network_interface=os.environ.get("DET_INTER_NODE_NETWORK_INTERFACE"),
        )


class RendezvousInfo:
    """The containers of the allocation, ordered by rank.

    Attributes:
        container_addrs: Address of each container.
        container_rank: Index of this container.
        container_slot_counts: Number of slots of each container.

    Examples:
        >>> import resolute
        >>> rendezvous = resolute.RendezvousInfo(["10.0.0.1", "10.0.0.2"], 0, [8, 8])
        >>> sum(rendezvous.container_slot_counts)
        16
    """

    def __init__(
        self, container_addrs: Sequence[str], container_rank: int, container_slot_counts: Sequence[int]
    ) -> None:
        self.container_addrs = list(container_addrs)
        self.container_rank = container_rank
        self.container_slot_counts = list(container_slot_counts)


class ResourcesInfo:
    """The devices of this container.

    Attributes:
        gpu_uuids: UUID of each GPU; empty without GPUs.

    Examples:
        >>> import resolute
        >>> resolute.ResourcesInfo([]).gpu_uuids
        []
    """

    def __init__(self, gpu_uuids: Sequence[str]) -> None:
        self.gpu_uuids = list(gpu_uuids)


class ClusterInfo:
    """The task that this process is part of.

    Attributes:
        master_url: URL of the cluster: of its HTTP gateway, or of gRPC if trials cannot reach the gateway.
        cluster_id: UUID of the cluster.
        agent_id: Name of the machine within the cluster.
        slot_ids: Slots of this container.
        task_id: Identifier of the task.
        allocation_id: Identifier of the allocation.
        session_token: Token at the start of the task; renewed tokens are in a file.
        task_type: ``TRIAL``, or the kind of another task.
        master_cert_name: Host name that the certificate must have; None for that of the address.
        master_cert_file: File of the control plane's certificate authority; None for a plain port.

    Examples:
        >>> import resolute
        >>> info = resolute.ClusterInfo(
        ...     "http://localhost", "cluster", "node", [0], "task", "allocation", "token", task_type="COMMAND"
        ... )
        >>> info.latest_checkpoint is None, len(info.slot_ids)
        (True, 1)
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the documented constructor
        self,
        master_url: str,
        cluster_id: str,
        agent_id: str,
        slot_ids: Sequence[int],
        task_id: str,
        allocation_id: str,
        session_token: str,
        task_type: str,
        master_cert_name: str | None = None,
        master_cert_file: str | None = None,
        latest_checkpoint: str | None = None,
        trial_info: TrialInfo | None = None,
        rendezvous_info: RendezvousInfo | None = None,
        resources_info: ResourcesInfo | None = None,
        *,
        connection: Connection | None = None,
        local: LocalTask | None = None,
    ) -> None:
        self.master_url = master_url
        self.cluster_id = cluster_id
        self.agent_id = agent_id
        self.slot_ids = list(slot_ids)
        self.task_id = task_id
        self.allocation_id = allocation_id
        self.session_token = session_token
        self.task_type = task_type
        self.master_cert_name = master_cert_name
        self.master_cert_file = master_cert_file
        self._latest_checkpoint = latest_checkpoint
        self._trial_info = trial_info
        self._rendezvous_info = rendezvous_info
        self._resources_info = resources_info
        self._connection = connection
        self._local = local

    @property
    def connection(self) -> Connection | None:
        """How to reach the services; None where no supervisor of ours wrote the info."""
        return self._connection

    @property
    def local(self) -> LocalTask | None:
        """What stands for the cluster where none runs the trial; None on a cluster."""
        return self._local

    @property
    def latest_checkpoint(self) -> str | None:
        """UUID of the checkpoint to start from; None for none, and unless the task is a trial."""
        return self._latest_checkpoint if self.task_type == TRIAL else None

    @property
    def user_data(self) -> dict[str, Any]:
        """The config's ``data``; empty unless the task is a trial."""
        if self._trial_info is None or self.task_type != TRIAL:
            return {}
        return dict(self._trial_info._config.get("data") or {})  # noqa: SLF001 - both are of this module

    @property
    def trial(self) -> TrialInfo:
        """The trial.

        Raises:
            RuntimeError: The task is no trial.
        """
        if self.task_type != TRIAL or self._trial_info is None:
            raise RuntimeError(
                f"a {self.task_type} task has no trial: ClusterInfo.trial is for TRIAL tasks only"
            )
        return self._trial_info

    @property
    def container_addrs(self) -> list[str]:
        """Address of each container, by rank."""
        return self._rendezvous().container_addrs

    @property
    def container_slot_counts(self) -> list[int]:
        """Slots of each container, by rank."""
        return self._rendezvous().container_slot_counts

    @property
    def container_rank(self) -> int:
        """Index of this container."""
        return self._rendezvous().container_rank

    @property
    def gpu_uuids(self) -> list[str]:
        """UUID of each GPU of this container."""
        return self._resources_info.gpu_uuids if self._resources_info else []

    def _rendezvous(self) -> RendezvousInfo:
        if self.task_type == TRIAL and self._rendezvous_info is not None:
            return self._rendezvous_info
        return RendezvousInfo(["127.0.0.1"], 0, [len(self.slot_ids)])

    def write(self, directory: Path) -> None:
        """Writes the info files for the processes of the task to read; all others before ``cluster.json``."""
        for name, part in (
            ("trial", self._trial_info),
            ("rendezvous", self._rendezvous_info),
            ("resources", self._resources_info),
        ):
            if part is not None:
                write_json(directory / f"{name}.json", _attributes(part))
        self._to_file(directory / "cluster.json")

    def _to_file(self, path: Path) -> None:
        parts = {"trial_info", "rendezvous_info", "resources_info", "connection", "local"}
        content = {key: value for key, value in _attributes(self).items() if key not in parts}
        if self._connection is not None:
            content["resolute"] = self._connection.to_json()
        if self._local is not None:
            content["local"] = self._local.to_json()
        write_json(path, content)

    @classmethod
    def _from_file(cls, directory: Path | None = None) -> ClusterInfo | None:
        directory = directory or info_directory()
        content = read_json(directory / "cluster.json")
        if content is None:
            return None
        trial = read_json(directory / "trial.json")
        rendezvous = read_json(directory / "rendezvous.json")
        resources = read_json(directory / "resources.json")
        connection = content.pop("resolute", None)
        local = content.pop("local", None)
        return cls(
            **content,
            trial_info=TrialInfo(**trial) if trial else None,
            rendezvous_info=RendezvousInfo(**rendezvous) if rendezvous else None,
            resources_info=ResourcesInfo(**resources) if resources else None,
            connection=Connection.from_json(connection) if connection else None,
            local=LocalTask.from_json(local) if local else None,
        )

    @classmethod
    def _from_env(cls) -> ClusterInfo:
        missing = [name for name in _REQUIRED if name not in os.environ]
        if missing:
            raise RuntimeError(f"the environment describes no task: {', '.join(missing)} are missing")
        task_type = os.environ["DET_TASK_TYPE"]
        return cls(
            master_url=os.environ["DET_MASTER"],
            cluster_id=os.environ["DET_CLUSTER_ID"],
            agent_id=os.environ["DET_AGENT_ID"],
            slot_ids=json.loads(os.environ["DET_SLOT_IDS"]),
            task_id=os.environ["DET_TASK_ID"],
            allocation_id=os.environ["DET_ALLOCATION_ID"],
            session_token=os.environ["DET_SESSION_TOKEN"],
            task_type=task_type,
            master_cert_name=os.environ.get("DET_MASTER_CERT_NAME"),
            master_cert_file=os.environ.get("DET_MASTER_CERT_FILE"),
            latest_checkpoint=os.environ.get("DET_LATEST_CHECKPOINT"),
            trial_info=TrialInfo._from_env() if task_type == TRIAL else None,  # noqa: SLF001 - same module
        )


_REQUIRED = (
    "DET_MASTER",
    "DET_CLUSTER_ID",
    "DET_AGENT_ID",
    "DET_SLOT_IDS",
    "DET_TASK_ID",
    "DET_ALLOCATION_ID",
    "DET_SESSION_TOKEN",
    "DET_TASK_TYPE",
)


def _attributes(value: object) -> Mapping[str, Any]:
    return {name.lstrip("_"): item for name, item in vars(value).items()}


def info_directory() -> Path:
    """Returns where the info files of this process's task lie, whether or not they are there."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)


_info: ClusterInfo | str | None = "unloaded"


def get_cluster_info() -> ClusterInfo | None:
    """Returns what is known of the task that this process is part of; read once.

    Returns:
        The info, or None off cluster.

    Examples:
        >>> import resolute
        >>> info = resolute.get_cluster_info()
        >>> {"lr": 0.1} if info is None else info.trial.hparams
        {'lr': 0.1}
    """
    global _info  # noqa: PLW0603 - scripts and their tests replace it by name
    if isinstance(_info, str):
        _info = ClusterInfo._from_file()  # noqa: SLF001 - the documented private name
    return _info


def trial_of(info: ClusterInfo | None) -> TrialInfo | None:
    """Returns the trial of a task; None off cluster and in other tasks, such as a notebook."""
    return info.trial if info is not None and info.task_type == TRIAL else None
