"""The server's settings of engines and resource pools: a YAML file.

::

    default_resource_pool: default
    resource_pools:
      - {pool_name: default, engine: local}
      - {pool_name: boxes, engine: podman, slots: 4}
    engines:
      podman: {type: container, url: "unix:///run/podman/podman.sock"}

The other options of an engine and its pools depend on the engine's type.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError, Fault
from resolute.contracts.documents.rejections import faults_of
from resolute.contracts.documents.section import Json, Name, Section
from resolute.errors import InvalidArgumentError, Violation

LOCAL = "local"
"""The engine that needs no settings: processes of this machine."""
VARIABLE = "RESOLUTE_RESOURCE_POOLS"
"""Names the file."""
DEFAULT_POOL = "default"
"""Name of the pool of this machine where no settings give it another."""
FILE_NAME = "resource-pools.yaml"
"""The file in the home of a cluster, where the variable names none."""

Options = TypeVar("Options", bound=Section)


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """The settings of one pool."""

    name: str
    """Its name."""
    options: Mapping[str, Any]
    """Its options: what stands there beside its name and its engine."""
    where: str
    """Its place in the file."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The settings of one engine with its pools."""

    name: str
    """Its name in the file."""
    type: str
    """What it is, as `plugins` names it."""
    options: Mapping[str, Any]
    """Its options: what stands there beside its type."""
    pools: tuple[PoolSettings, ...]
    """Its pools; one at least."""

    @property
    def where(self) -> str:
        """Its place in the file."""
        return f"engines.{self.name}"


@dataclass(frozen=True, kw_only=True)
class ResourceSettings:
    """The engines of a cluster."""

    engines: tuple[EngineSettings, ...]
    """Those that have pools."""
    default_pool: str
    """Where experiments run that name no pool."""


ONLY_LOCAL = ResourceSettings(
    engines=(
        EngineSettings(
            name=LOCAL,
            type=LOCAL,
            options={},
            pools=(PoolSettings(name=DEFAULT_POOL, options={}, where="resource_pools[0]"),),
        ),
    ),
    default_pool=DEFAULT_POOL,
)
"""What holds where there are no settings: this machine is the only pool."""


class _Pool(Section):
    pool_name: Name
    engine: Name = LOCAL


class _Engine(Section):
    type: Name


class _Document(Section):
    default_resource_pool: Name | None = None
    resource_pools: tuple[Json, ...] = ()
    engines: dict[str, Json] | None = None


def resources_of(variables: Mapping[str, str], home: Path | None) -> ResourceSettings | None:
    """Reads the file that the variable names, or that of the home; None where there is neither.

    Raises:
        InvalidArgumentError: It cannot be read, or something in it is wrong; the error lists every fault.
    """
    if named := variables.get(VARIABLE):
        return read_resource_settings(Path(named))
    file = None if home is None else home / FILE_NAME
    return read_resource_settings(file) if file is not None and file.exists() else None


def read_resource_settings(path: Path) -> ResourceSettings:
    """Reads the file.

    Raises:
        InvalidArgumentError: It cannot be read, or something in it is wrong; the error lists every fault.
    """
    try:
        text = path.read_text()
    except OSError as failure:
        raise InvalidArgumentError(
            f"{path} cannot be read: {os.strerror(failure.errno or 0)}; {VARIABLE} names another file"
        ) from failure
    try:
        document = read_document(text, name=str(path))
    except ConfigError as error:
        raise _refused(error.faults) from error
    if document.faults:
        raise _refused(document.faults)
    given = parse_options(_Document, document.content, at="")
    pools = [
        (f"resource_pools[{index}]", _part(_Pool, content, at=f"resource_pools[{index}]"), content)
        for index, content in enumerate(given.resource_pools)
    ]
    engines = {
        name: (_part(_Engine, content, at=f"engines.{name}"), content)
        for name, content in (given.engines or {}).items()
    }
    if LOCAL not in engines:
        engines[LOCAL] = (_Engine(type=LOCAL), {})
    names = [pool.pool_name for _, pool, _ in pools]
    default = given.default_resource_pool or next(iter(names), "")
    faults = [*_pool_faults(names, default), *_engine_faults(pools, engines)]
    if faults:
        raise _refused(faults)
    return ResourceSettings(
        default_pool=default,
        engines=tuple(
            EngineSettings(
                name=name,
                type=engine.type,
                options=_without(content, "type"),
                pools=tuple(
                    PoolSettings(
                        name=pool.pool_name, options=_without(of_pool, "pool_name", "engine"), where=where
                    )
                    for where, pool, of_pool in pools
                    if pool.engine == name
                ),
            )
            for name, (engine, content) in engines.items()
            if any(pool.engine == name for _, pool, _ in pools)
        ),
    )


def parse_options(model: type[Options], content: Any, *, at: str) -> Options:
    """Reads what the file says at one place.

    Args:
        model: The options that there are.
        content: What stands there.
        at: The place, for messages.

    Raises:
        InvalidArgumentError: Something is wrong; the error lists every fault.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = faults_of(error)
        raise _refused(
            Fault(".".join(filter(None, (at, fault.path))), fault.problem, fault.expected, fault.hint)
            for fault in faults
        ) from error


def _part(model: type[Options], content: Any, *, at: str) -> Options:
    """Reads what a model knows of a map; the rest is the engine's to read."""
    known = content
    if isinstance(content, Mapping):
        known = {name: value for name, value in content.items() if name in model.model_fields}
    return parse_options(model, known, at=at)


def _pool_faults(names: list[str], default: str) -> Iterable[Fault]:
    if not names:
        yield Fault("resource_pools", "missing", "a list of pools, each with pool_name and engine")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Fault("resource_pools", f"found {name!r} more than once", "names of pools, each once")
    if names and default not in names:
        yield Fault("default_resource_pool", f"found {default!r}", f"one of the pools: {', '.join(names)}")


def _engine_faults(pools: Iterable[tuple[str, _Pool, Any]], engines: Mapping[str, Any]) -> Iterable[Fault]:
    for where, pool, _ in pools:
        if pool.engine not in engines:
            expected = f"one of the engines: {', '.join(sorted(engines))}"
            yield Fault(f"{where}.engine", f"found {pool.engine!r}", expected)


def _without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in names}


def _refused(faults: Iterable[Fault]) -> InvalidArgumentError:
    listed_faults = list(faults)
    violations = [Violation(fault.path, fault.reason) for fault in listed_faults]
    listed = "\n".join(f"  {fault.path}: {fault.reason}" for fault in listed_faults)
    return InvalidArgumentError(f"the settings of resource pools are wrong:\n{listed}", violations=violations)
