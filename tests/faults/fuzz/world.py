"""The objects that fuzzed calls name: made through the contract, anew when calls have used them up."""

from __future__ import annotations

import asyncio
import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import yaml
from google.protobuf.message_factory import GetMessageClass
from support.calls.contract_methods import methods, path
from support.services.in_process import Running

from resolute.api.checkpoints.v1 import storage_pb2
from resolute.contracts.values import to_value
from resolute_serving.auth.policy.service_accounts import EMBEDDED
from resolute_serving.context import TrialRun

_CONFIG = {
    "name": "fuzz",
    "entrypoint": "sleep 600",
    "max_restarts": 0,
    "resources": {"slots_per_trial": 1},
    "hyperparameters": {
        "x": {"type": "double", "minval": 0.0, "maxval": 1.0, "count": 3},
        "layers": {"type": "categorical", "vals": [1, 2]},
    },
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 4}, "max_trials": 3},
}
_METHODS = {method.name: method for method in methods()} | {
    f"{method.containing_service.name}/{method.name}": method for method in methods()
}
_PATIENCE_SECONDS = 300.0


@dataclass
class World:
    """What there is to name.

    Attributes:
        names: Values of string fields by the field's name.
        numbers: Values of number fields by the field's name.
        run: The run that trial tokens speak for.
        storage: Where checkpoints lie.
        config: Config of experiments as YAML. It names the world's own workspace and project: calls change
            the quotas of those that they reach, and what one world used up must not end the next.
    """

    names: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    run: TrialRun = field(default_factory=lambda: TrialRun("", 1, "", "", ""))
    storage: Any = None
    config: str = ""


class Caller:
    """Makes single calls as an admin, a service or a run.

    Args:
        running: The services.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self.admin = running.user_token()
        self.service = running.service_token(EMBEDDED)
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.aio.insecure_channel(running.address, options=options)

    def trial(self, run: TrialRun) -> str:
        """The token of a run."""
        return self._running.trial_token(run)

    async def call(self, name: str, /, *, token: str, **fields: Any) -> Any:
        """Makes a call that must succeed, and returns its response."""
        method = _METHODS[name]
        multicallable = self.channel.unary_unary(
            path(method),
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        request = GetMessageClass(method.input_type)(**fields)
        return await multicallable(request, metadata=[("authorization", f"Bearer {token}")], timeout=60)


async def make_world(caller: Caller, folder: Path, rng: random.Random) -> World:
    """Makes one object of every kind.

    Args:
        caller: Makes the calls.
        folder: Where a checkpoint's files may lie.
        rng: Chooses names.
    """
    world = World()
    tag = f"{rng.getrandbits(48):x}"
    await _accounts(caller, world, tag)
    await _experiments(caller, world)
    await _unmanaged_run(caller, world, tag, folder=folder)
    await _checkpoints(caller, world, tag)
    return world


async def _accounts(caller: Caller, world: World, tag: str) -> None:
    admin = caller.admin
    workspace = (
        await caller.call("CreateWorkspace", token=admin, request_id=str(uuid.uuid4()), name=f"w{tag}")
    ).workspace
    project = (
        await caller.call(
            "CreateProject",
            token=admin,
            request_id=str(uuid.uuid4()),
            workspace_id=workspace.workspace_id,
            name=f"p{tag}",
        )
    ).project
    user = (
        await caller.call("CreateUser", token=admin, request_id=str(uuid.uuid4()), name=f"u{tag}", role=2)
    ).user
    token = (
        await caller.call(
            "CreateToken",
            token=admin,
            request_id=str(uuid.uuid4()),
            user_id=user.user_id,
            ttl={"seconds": 60},
        )
    ).token
    await caller.call("SetTemplate", token=admin, name=f"t{tag}", config_yaml="max_restarts: 0")
    world.numbers |= {
        "workspace_id": workspace.workspace_id,
        "project_id": project.project_id,
        "user_id": user.user_id,
        "owner_id": user.user_id,
    }
    world.names |= {"token_id": token.token_id, "user_name": user.name, "template": f"t{tag}"}
    world.config = yaml.safe_dump(_CONFIG | {"workspace": workspace.name, "project": project.name})


async def _experiments(caller: Caller, world: World) -> None:
    spec = {"config_yaml": world.config, "paused": True}
    created = await caller.call(
        "CreateExperiment", token=caller.admin, request_id=str(uuid.uuid4()), spec=spec
    )
    world.numbers["experiment_number"] = created.experiment.number
    world.names["search_id"] = created.experiment.experiment_id
    world.names["search_trial_id"] = await _first_trial(caller, created.experiment.number)
    custom = str(uuid.uuid4())
    method = {"external": {"name": "custom"}}
    await caller.call(
        "CreateSearch", token=caller.service, search_id=custom, spec={"metric": "loss", **method}
    )
    world.names["custom_search_id"] = custom


async def _first_trial(caller: Caller, number: int) -> str:
    """The first trial of an experiment, which its controller makes shortly after the experiment."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        trials = (await caller.call("ListTrials", token=caller.admin, experiment={"number": number})).trials
        if trials:
            return str(trials[0].trial_id)
        await asyncio.sleep(0.05)
    raise TimeoutError(f"experiment {number} has no trial after {_PATIENCE_SECONDS:g} s")


async def _unmanaged_run(caller: Caller, world: World, tag: str, *, folder: Path) -> None:
    begun = await caller.call(
        "BeginRun",
        token=caller.admin,
        external_run_id=str(uuid.uuid4()),
        name="fuzzed",
        hparams=to_value({"x": 0.5}),
        config=to_value({"description": "fuzzed", "workspace": f"w{tag}", "project": f"p{tag}"}),
    )
    trial = begun.trial
    world.names |= {"trial_id": trial.trial_id, "experiment_id": trial.experiment_id}
    world.numbers |= {"trial_number": trial.number, "run": begun.run}
    world.run = TrialRun(
        trial_id=trial.trial_id,
        run=begun.run,
        experiment_id=trial.experiment_id,
        allocation_id=f"{trial.trial_id}.{begun.run}",
        workspace=f"w{tag}",
        workspace_id=world.numbers["workspace_id"],
    )
    world.names["allocation_id"] = world.run.allocation_id
    world.storage = begun.storage or storage_pb2.Storage(
        directory=storage_pb2.Storage.Directory(path=str(folder))
    )


async def _checkpoints(caller: Caller, world: World, tag: str) -> None:
    token = caller.trial(world.run)
    world.names["checkpoint_id"] = str(uuid.uuid4())
    world.names["uploading_checkpoint_id"] = str(uuid.uuid4())
    owner = {"trial_id": world.run.trial_id, "run": world.run.run, "experiment_id": world.run.experiment_id}
    for name in ("checkpoint_id", "uploading_checkpoint_id"):
        await caller.call(
            "BeginCheckpoint", token=token, checkpoint_id=world.names[name], storage=world.storage, **owner
        )
    place = Path(world.storage.directory.path) / world.names["checkpoint_id"]
    place.mkdir(parents=True, exist_ok=True)
    (place / "model.pt").write_bytes(b"weights")
    await caller.call(
        "CommitCheckpoint",
        token=token,
        checkpoint_id=world.names["checkpoint_id"],
        run=world.run.run,
        files=[{"path": "model.pt", "size": 7}],
        metadata=to_value({"steps_completed": 1}),
    )
    model = (
        await caller.call(
            "CreateModel", token=caller.admin, request_id=str(uuid.uuid4()), model={"name": f"m{tag}"}
        )
    ).model
    await caller.call(
        "CreateVersion",
        token=caller.admin,
        request_id=str(uuid.uuid4()),
        key={"model_id": model.model_id},
        checkpoint_id=world.names["checkpoint_id"],
        version={},
    )
    world.names["model_id"] = model.model_id
