"""Checks that an engine's settings are valid and that it answers."""

from __future__ import annotations

import asyncio

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError, ResoluteError, UnavailableError
from resolute_embedded.doctor.findings import Finding, fault, good
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import Engine
from resolute_engines.settings import EngineSettings

_DEADLINE_SECONDS = 45.0


def page_of(engine: EngineSettings) -> str:
    """The page that tells how an engine is set up."""
    names = {"container": "containers", "kubernetes": "kubernetes", "ray": "ray", "slurm": "slurm"}
    return f"see docs/{names.get(engine.type, 'engines')}.md"


def opened(engine: EngineSettings, state: StateDirectory) -> Engine:
    """An engine as its settings say, to be asked and closed.

    Raises:
        InvalidArgumentError: The settings are wrong.
        FailedPreconditionError: A certificate that they name cannot be read.
    """
    environment = EngineEnvironment(
        # A home that was never used gets no id from somebody who only looks.
        cluster_id=state.cluster_id.get() if state.cluster_id.path.exists() else "none",
        address="",
        tls=None,
        outage_timeout=0.0,
        log_wait=0.0,
        runs_directory=state.runs,
        slots=None,
        nodes=1,
    )
    return create_engine(engine, environment)


def check_contact(engine: EngineSettings, state: StateDirectory) -> Finding:
    """Opens an engine, and asks it what it has of this cluster."""
    subject = f"engine {engine.name}"
    try:
        runs = asyncio.run(_runs_of(engine, state))
    except UnavailableError as error:
        return fault(subject, str(error), remedy=f"start it, or mend how it is reached: {page_of(engine)}")
    except DeadlineError:
        return fault(subject, f"it did not answer in {_DEADLINE_SECONDS:g} s", remedy=page_of(engine))
    except ResoluteError as error:
        return fault(subject, str(error), remedy=page_of(engine))
    except Exception as error:  # noqa: BLE001 - an engine of others; one of ours is looked at by tests
        failed = f"type {engine.type!r} failed: {type(error).__name__}: {error}"
        return fault(
            subject, failed, remedy="report it to its authors, or remove this engine from the settings"
        )
    return good(subject, f"it answers, and has {runs} runs of this cluster")


async def _runs_of(engine: EngineSettings, state: StateDirectory) -> int:
    asked = opened(engine, state)
    try:
        return len(await in_time(asked.leftovers(), _DEADLINE_SECONDS, engine.name))
    finally:
        await asked.close()
