"""The page in a browser, in front of all services in this process, signed in and with something to see."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller
from support.pages.browser import browser_page, need_browser
from support.services.access import calls
from support.services.gateway import gateway
from support.services.in_process import Running, serving
from support.services.logs import columns, line
from support.services.metrics import block

from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.experiments.v1 import access_service_pb2, run_pb2, user_pb2
from resolute.api.logs.v1 import line_pb2
from resolute.contracts.values import to_value
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import TrialRun

BEST = 0.025
MARKUP = "<img src=x onerror=alert(1)>"
_CONFIG = {
    "name": MARKUP,
    "entrypoint": "sleep 600",
    "resources": {"slots_per_trial": 1},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}
_SECONDS = 300
"""Patience of a whole visit; each step has its own."""


@dataclass(frozen=True)
class Visit:
    """A visit of the page."""

    page: Any
    """The tab."""
    url: str
    """Where the gateway listens."""
    running: Running
    caller: Caller
    folder: Path
    """Where the services' data lies."""

    async def sign_in(self, *, role: user_pb2.UserRole.ValueType = user_pb2.USER_ROLE_EDITOR) -> None:
        """Signs in with a one-time code that is typed.

        Args:
            role: What the person may do in the cluster.
        """
        async with calls(self.running, self.running.user_token()) as admin:
            await admin.user("ada", role=role)
            made = await admin.access.CreateSignInCode(access_service_pb2.CreateSignInCodeRequest())
        await self.page.goto(self.url)
        await self.page.get_by_label("One-time code").fill(made.code)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.get_by_role("heading", name="Sign in to Resolute").wait_for(state="detached")

    async def create(self, *, trials: int = 1, **fields: Any) -> list[Any]:
        """Creates an experiment and waits for its trials.

        Args:
            trials: How many it begins with.
            fields: Fields of its config.
        """
        spec = {"config_yaml": yaml.safe_dump({**_CONFIG, **fields})}
        admin = self.caller.admin
        created = await self.caller.call(
            "CreateExperiment", token=admin, request_id=str(uuid.uuid4()), spec=spec
        )
        experiment = {"number": created.experiment.number}
        while True:
            listed = await self.caller.call("ListTrials", token=admin, experiment=experiment)
            if len(listed.trials) >= trials:
                return list(listed.trials)
            await asyncio.sleep(0.05)

    async def fail(self, name: str, failure: str) -> Any:
        """Records an experiment whose one run failed, outside of the cluster: nothing is run here.

        Args:
            name: Its name.
            failure: What the run says of it, such as a traceback.

        Returns:
            Its trial.
        """
        begun = await self.caller.call(
            "BeginRun", token=self.caller.admin, external_run_id=str(uuid.uuid4()), name=name
        )
        run = {"trial_id": begun.trial.trial_id, "run": begun.run}
        outcome = run_pb2.RUN_OUTCOME_FAILED
        await self.caller.call("EndRun", token=begun.token, outcome=outcome, failure=failure, **run)
        return begun.trial

    async def report(self, trial: Any) -> None:
        """Sends a curve with a gap, a validation, and lines of two levels, as the trial would."""
        owner, token = self.owner(trial)
        owner["source"] = "s"
        steps = list(range(1, 41))
        values = [float("nan") if step == 20 else 1 / step for step in steps]
        points = [
            block("training", range(40), steps, loss=values),
            block("validation", [40], [40], loss=[BEST]),
        ]
        selection = {"searcher_metric": "loss", "smaller_is_better": True}
        await self.caller.call(
            "IngestReports", token=token, first_sequence=0, count=41, blocks=points, **selection, **owner
        )
        lines = [
            line("epoch 1\repoch 2", level=line_pb2.LEVEL_INFO),
            line(f"\x1b[31m{MARKUP}\x1b[0m", level=line_pb2.LEVEL_ERROR),
        ]
        await self.caller.call("IngestLines", token=token, first_sequence=0, lines=columns(lines), **owner)

    async def say(self, trial: Any, *messages: str, first: int = 0) -> None:
        """Sends lines, as the trial would.

        Args:
            trial: Whose they are.
            messages: One for each line.
            first: How many lines the trial has sent before.
        """
        owner, token = self.owner(trial)
        lines = columns([line(message) for message in messages])
        await self.caller.call(
            "IngestLines", token=token, source="s", first_sequence=first, lines=lines, **owner
        )

    async def save(self, trial: Any, content: bytes, *, path: str = "model.pt") -> Path:
        """Commits a checkpoint with one file, as the trial would.

        Returns:
            Where the file is.
        """
        owner, token = self.owner(trial)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        checkpoint_id, directory = str(uuid.uuid4()), self.folder / "checkpoints"
        storage = storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(directory)))
        await self.caller.call(
            "BeginCheckpoint", token=token, checkpoint_id=checkpoint_id, storage=storage, **owner
        )
        file = directory / checkpoint_id / path
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        await self.caller.call(
            "CommitCheckpoint",
            token=token,
            checkpoint_id=checkpoint_id,
            run=1,
            files=[{"path": path, "size": len(content), "digest": digest}],
            metadata=to_value({"steps_completed": 40}),
        )
        return file

    async def log(self, trial: Any, media: list[dict[str, Any]], *, source: str = "s") -> Any:
        """Sends media, as the trial would.

        Args:
            trial: Whose they are.
            media: One ``LoggedMedia`` each.
            source: The spool that they are from; each begins anew.

        Returns:
            Those that were refused.
        """
        owner, token = self.owner(trial)
        directory = storage_pb2.Storage.Directory(path=str(self.folder / "checkpoints"))
        answer = await self.caller.call(
            "IngestMedia",
            token=token,
            source=source,
            count=len(media),
            media=media,
            storage=storage_pb2.Storage(directory=directory),
            **owner,
        )
        return answer.refusals

    def owner(self, trial: Any) -> tuple[dict[str, Any], str]:
        """Who the first run of a trial is, and its token."""
        run = TrialRun(trial.trial_id, 1, trial.experiment_id, "ada", "w", workspace_id=1)
        owner = {"trial_id": run.trial_id, "run": 1, "experiment_id": run.experiment_id}
        return owner, self.running.trial_token(run)


def visit_page(
    built: Path, folder: Path, scenario: Callable[[Visit], Awaitable[None]], *, seconds: float = _SECONDS
) -> None:
    """Serves everything, opens a browser and runs a scenario, or skips the test where there is no browser.

    Args:
        built: Folder of the built page.
        folder: Where databases and data lie.
        scenario: What is done and seen.
        seconds: Patience of the whole visit.
    """
    need_browser(built)

    async def serve() -> None:
        key = load_or_create_key(folder / "data/experiments/signing-key.pem")
        async with (
            serving(BLUEPRINTS, folder, key=key) as running,
            gateway(running.address) as http,
            browser_page() as page,
        ):
            caller = Caller(running)
            try:
                await scenario(Visit(page, f"http://127.0.0.1:{http.port}", running, caller, folder))
            finally:
                await caller.channel.close()
                end_processes(folder)

    asyncio.run(asyncio.wait_for(serve(), seconds))
