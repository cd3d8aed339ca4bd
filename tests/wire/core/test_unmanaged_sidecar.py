"""The sidecar of a run outside of the cluster, against the experiments service."""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path

from support.clocks import ManualClock
from support.services.in_process import Running, serving

from resolute.client.connection.endpoint import Endpoint
from resolute.client.connection.session import Session
from resolute.client.remote.trials import Trials
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.core.unmanaged.sidecar import Sidecar
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.shipping import SpoolShipper
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.transitions.signals import allocation_id
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role, TrialRun


def endpoint(address: str, token: str) -> Endpoint:
    return Endpoint(
        address=address,
        token=lambda: token,
        token_origin="of a test",
        credential_file=Path("token"),
        remedy="",
    )


def test_a_script_stops_whose_run_ended_so_long_ago_that_its_token_has_expired(tmp_path: Path) -> None:
    async def scenario() -> list[bool]:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with serving([BLUEPRINT], tmp_path, key=key) as running:
            return await asyncio.to_thread(serve, running, tmp_path)

    assert asyncio.run(scenario()) == [False, False, False, True]


def serve(running: Running, folder: Path) -> list[bool]:
    """Ends a run while its machine sleeps, and returns whether its script was told, look by look."""
    clock = ManualClock()
    run = OfflineRun.create(folder / "offline", run_id=str(uuid.uuid4()), name="asleep", now=clock.time())
    files = RunDirectory(run.directory)
    files.prepare()
    flags, looks = Flags(files.flags_file), list[bool]()

    def wait(_: float) -> None:
        looks.append(flags.preempt)
        assert len(looks) < 10, "the script is never told"
        if flags.preempt:
            ExitRecord(exit_code=0, end_time=clock.time()).write(run.exit_file)
        clock.advance(25.0)

    with Session(endpoint(running.address, running.user_token(role=Role.EDITOR))) as person:
        begun = Trials(person).begin(run)
        Trials(person).kill(begun.trial.uuid)
    identity = RunIdentity(begun.trial.uuid, begun.run, begun.trial.experiment_uuid)
    allocation = allocation_id(identity.trial_id, identity.run)
    claims = TrialRun(identity.trial_id, identity.run, identity.experiment_id, allocation, "Uncategorized")
    expired = running.signer.trial(claims, ttl=-60)
    write_atomically(files.token_file, expired)
    with Session(endpoint(running.address, expired)) as session:
        sidecar = Sidecar(
            run,
            trainer=ProcessIdentity.of(os.getpid()),
            identity=identity,
            trials=Trials(session),
            shipping=session.stub(lambda channel: SpoolShipper(channel, run.spool, identity, clock=clock)),
            outage_timeout=0.0,
            clock=clock,
            wait=wait,
        )
        # Its end cannot be told with that token: `resolute sync` does, as the person.
        assert not sidecar.serve()
    return looks
