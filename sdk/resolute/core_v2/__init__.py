"""The Core API for scripts that run anywhere: it records them live on a cluster that does not run them.

``init`` begins an unmanaged trial on the cluster that the environment names. The parts of the context are
then available in this module::

    from resolute import core_v2

    core_v2.init(config=core_v2.Config(name="mnist", hparams={"lr": 0.1}))
    core_v2.train.report_training_metrics(steps_completed=10, metrics={"loss": 0.3})
    core_v2.close()

On a cluster that runs the script, ``init`` is ``resolute.core.init``.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import resolute
from resolute.core import Context, DistributedContext, DummyDistributedContext, PreemptMode, TensorboardMode
from resolute.core import init as _core_init
from resolute.core.checkpoint.storage import parse_storage
from resolute.core.initialization import disable_grpc_fork_support
from resolute.core.unmanaged.config import Config, DefaultConfig, UnmanagedConfig, warn_of_older_spelling

if TYPE_CHECKING:
    from resolute.client import Client

__all__ = [
    "Config",
    "Context",
    "DefaultConfig",
    "DistributedContext",
    "PreemptMode",
    "TensorboardMode",
    "UnmanagedConfig",
    "checkpoint",
    "close",
    "distributed",
    "init",
    "init_context",
    "preempt",
    "profiler",
    "searcher",
    "train",
    "url_reverse_webui_exp_view",
]


class _Singleton:
    """The context of this process."""

    context: Context | None = None
    watches_exit = False


def init(
    *,
    config: Config | None = None,
    defaults: Config | None = None,
    unmanaged: Config | None = None,
    client: Client | None = None,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> None:
    """Begins the trial of this process, closing an older one. ``close`` ends it, or the end of the script.

    Args:
        config: What the experiment's config would say and where the trial belongs; with it, the next two
            have no effect. Without effect on a cluster that runs the script.
        defaults: The older spelling of ``config``.
        unmanaged: The older spelling of where the trial belongs.
        client: The cluster; None for the one that RESOLUTE_MASTER, DET_MASTER or the home names.
        distributed: The other processes of the trial. They must see the same directories.
        checkpoint_storage: Where checkpoints go, as for ``core.init``.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.

    With no cluster in reach, or none named, the run is recorded on this machine and a warning says where. The
    next ``init`` that reaches the cluster sends it, or ``resolute sync``.

    Raises:
        NotImplementedError: A name across runs is no text, or a trial has one and its experiment has none.
        ResoluteError: The cluster does not take the trial.

    Examples:
        >>> from resolute import core_v2
        >>> core_v2.init(config=core_v2.Config(name="mnist", hparams={"lr": 0.1}))
        >>> core_v2.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
        >>> core_v2.info.trial.hparams
        {'lr': 0.1}
        >>> core_v2.close()
    """
    config = _chosen(config, defaults, unmanaged)
    close()
    context = init_context(
        config=config,
        client=client,
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )
    context.start()
    _Singleton.context = context
    if not _Singleton.watches_exit:
        _Singleton.watches_exit = True
        atexit.register(close)


def init_context(
    *,
    config: Config | None = None,
    defaults: Config | None = None,
    unmanaged: Config | None = None,
    client: Client | None = None,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """Makes a context for a ``with`` statement, and leaves the functions of this module alone.

    The arguments and errors are those of ``init``.

    Examples:
        >>> from resolute import core_v2
        >>> with core_v2.init_context(config=core_v2.Config(name="mnist")) as context:
        ...     context.train.report_metrics("inference", 1, {"latency_ms": 3.2})
    """
    config = _chosen(config, defaults, unmanaged)
    if resolute.get_cluster_info() is not None:
        return _core_init(
            distributed=distributed,
            checkpoint_storage=checkpoint_storage,
            preempt_mode=preempt_mode,
            tensorboard_mode=tensorboard_mode,
        )
    config.check_names()
    disable_grpc_fork_support()
    from resolute.core.unmanaged.context import begin

    return begin(
        config=config,
        client=client,
        distributed=distributed or DummyDistributedContext(),
        checkpoint_storage=None if checkpoint_storage is None else parse_storage(checkpoint_storage),
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )


def close(
    exc_type: type[BaseException] | None = None,
    exc_val: BaseException | None = None,
    exc_tb: Any = None,
) -> None:
    """Ends the trial and waits a while until what was reported has arrived. Does nothing without one.

    Examples:
        >>> from resolute import core_v2
        >>> core_v2.close()
    """
    context, _Singleton.context = _Singleton.context, None
    if context is not None:
        context.close(exc_type, exc_val, exc_tb)


def url_reverse_webui_exp_view() -> str:
    """Returns the address of the experiment's page.

    Raises:
        RuntimeError: ``init`` was not called.

    Examples:
        >>> from resolute import core_v2
        >>> core_v2.init(config=core_v2.Config(name="mnist"))
        >>> core_v2.url_reverse_webui_exp_view()
        Traceback (most recent call last):
        ...
        RuntimeError: this trial is on no cluster
        >>> core_v2.close()
    """
    info = _require().info
    if info is None or not info.master_url:
        raise RuntimeError("this trial is on no cluster")
    return f"{info.master_url}/det/experiments/{info.trial.experiment_id}"


def _chosen(config: Config | None, defaults: Config | None, unmanaged: Config | None) -> Config:
    for argument, given in (("defaults", defaults), ("unmanaged", unmanaged)):
        if given is not None:
            warn_of_older_spelling(f"the argument {argument}", stacklevel=4)
    return config or (defaults or Config()).placed_by(unmanaged)


def _require() -> Context:
    if _Singleton.context is None:
        raise RuntimeError("there is no trial: call core_v2.init() first")
    return _Singleton.context


class _Part:
    """A proxy for a part of the current context."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(getattr(_require(), self._name), attribute)


train: Any = _Part("train")
"""``Context.train`` of the trial."""
checkpoint: Any = _Part("checkpoint")
"""``Context.checkpoint`` of the trial."""
preempt: Any = _Part("preempt")
"""``Context.preempt`` of the trial."""
searcher: Any = _Part("searcher")
"""``Context.searcher`` of the trial."""
profiler: Any = _Part("profiler")
"""``Context.profiler`` of the trial."""
distributed: Any = _Part("distributed")
"""``Context.distributed`` of the trial."""


def __getattr__(name: str) -> Any:
    if name == "info":  # scripts ask for it before there is a trial
        return None if _Singleton.context is None else _Singleton.context.info
    if name in {"experimental", "alert"}:
        return getattr(_require(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
