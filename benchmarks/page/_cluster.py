"""A cluster of its own, filled as trials fill it: by their calls, each with the token of its run."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from faults.fuzz.world import Caller
from support.services.in_process import Running

from benchmarks.embedded import Embedded, embedded
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import TrialRun

Item = TypeVar("Item")
_AT_ONCE = 8
_TRIALS_PAGE = 1000
_PATIENCE_SECONDS = 600.0


@dataclass(frozen=True)
class PageCluster:
    """A running cluster and who calls it."""

    embedded: Embedded
    running: Running
    caller: Caller

    async def create(self, *, name: str, trials: int, **config: Any) -> tuple[int, list[Any]]:
        """Creates an experiment and waits for its trials.

        Args:
            name: Its name.
            trials: How many trials it begins with.
            config: More fields of its config.

        Returns:
            Its number and its trials, by number.
        """
        spec = {"config_yaml": yaml.safe_dump({"name": name, "entrypoint": "sleep 86400", **config})}
        admin = self.caller.admin
        created = await self.caller.call(
            "CreateExperiment", token=admin, request_id=str(uuid.uuid4()), spec=spec
        )
        number = created.experiment.number
        deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while len(found := await self.trials(number)) < trials:
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"experiment {number} has {len(found)} of {trials} trials")
            await asyncio.sleep(0.5)
        return number, found

    async def trials(self, number: int) -> list[Any]:
        """The trials of an experiment, by number."""
        found: list[Any] = []
        token = ""
        while True:
            page = await self.caller.call(
                "ListTrials",
                token=self.caller.admin,
                experiment={"number": number},
                page_size=_TRIALS_PAGE,
                page_token=token,
            )
            found += page.trials
            token = page.next_page_token
            if not token:
                return sorted(found, key=lambda trial: int(trial.number))

    def owner(self, trial: Any) -> tuple[dict[str, Any], str]:
        """The fields of a call that name the first run of a trial, and its token."""
        run = TrialRun(trial.trial_id, 1, trial.experiment_id, "bench", "bench")
        owner = {"trial_id": run.trial_id, "run": 1, "experiment_id": run.experiment_id}
        return owner, self.running.trial_token(run)

    async def sign_in_code(self) -> str:
        """A code for one sign-in of the page."""
        return str((await self.caller.call("CreateSignInCode", token=self.caller.admin)).code)


@asynccontextmanager
async def page_cluster() -> AsyncIterator[PageCluster]:
    """Serves an empty home until the block ends."""
    with embedded() as cluster:
        key = load_or_create_key(cluster.home / "data" / "signing-key.pem")
        signer = TokenSigner(key, cluster_id=cluster.cluster_id, clock=SYSTEM_CLOCK)
        running = Running(address=cluster.address, signer=signer, services=())
        caller = Caller(running)
        caller.admin = (cluster.home / "token").read_text().strip()
        try:
            yield PageCluster(embedded=cluster, running=running, caller=caller)
        finally:
            await caller.channel.close()


async def for_all(items: Iterable[Item], work: Callable[[Item], Awaitable[Any]]) -> None:
    """Does something for each item, a few at once."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
