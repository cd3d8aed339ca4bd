"""The types of engines: the built-in ones, and those that other distributions register.

A distribution registers a type by an entry point, which has the type's name and refers to its factory::

    [project.entry-points."resolute.engines"]
    batch = "example_batch.factory:create_engine"
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from resolute.contracts.distribution import install_command
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.protocol import Engine
from resolute_engines.settings import EngineSettings

GROUP = "resolute.engines"
"""Group of the entry points."""

_OURS = tuple(
    EntryPoint(name=name, value=f"resolute_engines.{name}.factory:create_engine", group=GROUP)
    for name in ("container", "kubernetes", "local", "ray", "slurm")
)


class EngineFactory(Protocol):
    """Creates engines of one type."""

    def __call__(self, settings: EngineSettings, environment: EngineEnvironment) -> Engine:
        """Makes an engine; calls nothing outside of this process yet.

        Args:
            settings: What the file of engines and pools says of it.
            environment: What every engine is given: facts of the cluster.

        Raises:
            InvalidArgumentError: The settings are wrong; the error lists every fault.
        """


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> Engine:
    """Makes an engine of the type that its settings name.

    Args:
        settings: What the file of engines and pools says of it.
        environment: What every engine is given: facts of the cluster.

    Raises:
        InvalidArgumentError: There is no such type, there are two, its factory or a library of it is missing,
            its settings are wrong, or the factory of another distribution failed.
    """
    registered = (*_OURS, *entry_points(group=GROUP))
    types = [entry for entry in registered if entry.name == settings.type]
    if len(types) != 1:
        raise InvalidArgumentError(f"{settings.where}.type: {_fault(settings.type, registered)}")
    (entry,) = types
    try:
        return _made(entry, settings, environment)
    except ResoluteError:
        raise
    except Exception as error:
        if entry in _OURS:
            raise
        # Code of others: who starts a cluster is not who can read its traceback.
        raise InvalidArgumentError(
            f"{settings.where}.type: {settings.type!r} is registered as {entry.value}, which failed: "
            f"{type(error).__name__}: {error}; report it to its authors, or remove this engine from the "
            "settings"
        ) from error


def _made(entry: EntryPoint, settings: EngineSettings, environment: EngineEnvironment) -> Engine:
    try:
        factory: EngineFactory = entry.load()
    except ModuleNotFoundError as missing:
        remedy = install_command(settings.type) if entry in _OURS else "install it"
        raise InvalidArgumentError(
            f"{settings.where}: the library {missing.name} is not here: {remedy}"
        ) from missing
    except AttributeError as missing:
        raise InvalidArgumentError(
            f"{settings.where}.type: {settings.type!r} is registered as {entry.value}, "
            f"which is not there: {missing}"
        ) from missing
    return factory(settings, environment)


def _fault(name: str, registered: tuple[EntryPoint, ...]) -> str:
    values = [entry.value for entry in registered if entry.name == name]
    if values:
        return f"{name!r} is registered more than once, by {' and '.join(values)}: uninstall all but one"
    return f"found {name!r}; expected one of: {', '.join(sorted(entry.name for entry in registered))}"
