"""Names of older releases: some are aliases, most raise an error that says what to use instead."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CLIENT = "determined.experimental.client"
_MODULES_OF_CLIENT = (
    "checkpoint",
    "determined",
    "experiment",
    "metrics",
    "model",
    "oauth2_scim_client",
    "project",
    "resource_pool",
    "trial",
    "user",
    "workspace",
)
_SAME = {
    "determined._core": "determined.core",
    **{f"determined.common.experimental.{name}": _CLIENT for name in _MODULES_OF_CLIENT},
    **{f"determined.experimental.{name}": _CLIENT for name in ("checkpoint", "metrics", "model")},
}
"""The module that each is now."""

_NO_ESTIMATORS = "TensorFlow removed estimators; train with the Core API (docs/core-api.md) or with PyTorch"
_NO_NATIVE = (
    "the entrypoint of a config names the trial class (docs/pytorch.md), and scripts use the Core API"
)
_NO_HARNESS = "it is the harness's own; write a Trial class (docs/pytorch.md) or a script with the Core API"
_NO_HTTP = "there is no REST API; use determined.experimental.client, or gRPC (docs/clients.md)"
_NO_DEPLOY = (
    "start a cluster with `resolute up` (docs/workstation.md), or deploy its services (docs/services.md)"
)
_NO_MODEL_HUB = (
    "give determined.transformers.DetCallback to the Trainer of transformers (docs/integrations.md), or "
    "write a PyTorchTrial (docs/pytorch.md)"
)
_NO_SESSION = "use determined.experimental.client.login, or DET_USER and DET_PASS"
_NO_LOGS = "use Trial.iter_logs of determined.experimental.client"
_OF_REST = [
    "AnyNTSC",
    "BaseSession",
    "NTSC_Kind",
    "PageOpts",
    "Session",
    "TaskSession",
    "TrialProfilerMetricsBatch",
    "UnauthSession",
    "WARNING_MESSAGE_MAP",
    "WebSocket",
    "browser_open",
    "canonicalize_master_url",
    "create_group_assignment_request",
    "create_user_assignment_request",
    "delete",
    "do_request",
    "get",
    "get_default_master_url",
    "get_ntsc_details",
    "get_trial_profiler_available_series",
    "group_name_to_group_id",
    "make_url",
    "not_found_errs",
    "parse_master_address",
    "patch",
    "post",
    "post_trial_profiler_metrics_batches",
    "put",
    "read_paginated",
    "role_name_to_role_id",
    "usernames_to_user_ids",
    "wait_for_ntsc_state",
    "wait_for_task_ready",
    "workspace_by_name",
    "ws",
]
"""What `determined.common.api` had for calls of REST."""
_REFUSED = {
    **{f"determined.common.api.{name}": _NO_HTTP for name in _OF_REST},
    "determined.common.api.Authentication": _NO_SESSION,
    "determined.EnvContext": _NO_HARNESS,
    "determined.CallbackTrialController": _NO_HARNESS,
    "determined.LegacyTrial": "write a PyTorchTrial (docs/pytorch.md) or a TFKerasTrial (docs/keras.md)",
    "determined.LoopTrialController": _NO_HARNESS,
    "determined.NativeContext": _NO_NATIVE,
    "determined.Trial": "write a PyTorchTrial (docs/pytorch.md) or a TFKerasTrial (docs/keras.md)",
    "determined.TrialController": _NO_HARNESS,
    "determined.cli.tunnel": (
        "shells and notebooks are not there; `resolute command run` runs a command on slots"
    ),
    "determined.common.api.authentication": _NO_SESSION,
    "determined.common.api.bindings": _NO_HTTP,
    "determined.common.api.certs": (
        "name the certificate in DET_MASTER_CERT_FILE, or by `cert_path` of client.login"
    ),
    "determined.common.api.logs": _NO_LOGS,
    "determined.common.api.metric": "use Trial.iter_metrics of determined.experimental.client",
    "determined.common.api.pprint_logs": _NO_LOGS,
    "determined.common.api.pprint_task_logs": _NO_LOGS,
    "determined.common.api.pprint_trial_logs": _NO_LOGS,
    "determined.common.api.profiler": _NO_HTTP,
    "determined.common.api.request": _NO_HTTP,
    "determined.common.api.salt_and_hash": _NO_SESSION,
    "determined.common.api.task": _NO_LOGS,
    "determined.common.api.task_logs": _NO_LOGS,
    "determined.common.api.trial_logs": _NO_LOGS,
    "determined.common.check": "use assert, or raise ValueError",
    "determined.common.constants": (
        "it held paths and defaults of Determined's own containers; write down what the script needs"
    ),
    "determined.common.context": (
        "client.create_experiment takes the directory of the code, and reads its .detignore"
    ),
    "determined.common.declarative_argparse": "use argparse",
    "determined.common.requests": _NO_HTTP,
    "determined.common.set_logger": "use logging.basicConfig of Python",
    "determined.common.schemas": (
        "write the config as a dict, which client.create_experiment takes (docs/config.md)"
    ),
    "determined.common.storage": (
        "use core_context.checkpoint, or Checkpoint.download of determined.experimental.client"
    ),
    "determined.common.streams": _NO_HTTP,
    "determined.common.types": "annotate with the types of Python's typing",
    "determined.common.util": (
        "use PyYAML, pathlib and random; determined.util has what scripts need of the platform"
    ),
    "determined.common.yaml": "use PyYAML (import yaml), which is installed",
    "determined.constants.AUTO_DETECT_TRIAL_RUNNER_NETWORK_INTERFACE": (
        "interfaces are chosen by the launch layers (docs/launch.md)"
    ),
    "determined.constants.CONTAINER_STDERR": "`det trial logs` shows what a trial printed",
    "determined.constants.CONTAINER_STDOUT": "`det trial logs` shows what a trial printed",
    "determined.constants.MANAGED_TRAINING_MODEL_COPY": "the code of a trial lies in its working directory",
    "determined.constants.SHARED_FS_CONTAINER_PATH": (
        "use core_context.checkpoint, which knows where checkpoints lie"
    ),
    "determined.deploy": _NO_DEPLOY,
    "determined.estimator": _NO_ESTIMATORS,
    "determined.experimental.estimator": _NO_ESTIMATORS,
    "determined.experimental.keras": (
        "train by model.fit with determined.keras.DeterminedCallback, or write a "
        "determined.keras.TFKerasTrial (docs/keras.md)"
    ),
    "determined.gpu": "use torch.cuda, or nvidia-smi",
    "determined.ipc": "use allgather, gather and broadcast of core_context.distributed",
    "determined.keras.TFKerasContext": (
        "write a determined.keras.TFKerasTrial, whose context is a TFKerasTrialContext"
    ),
    "determined.keras.TFKerasNativeContext": _NO_NATIVE,
    "determined.keras.TFKerasTrialController": _NO_HARNESS,
    "determined.layers": _NO_HARNESS,
    "determined.load": _NO_HARNESS,
    "determined.monkey_patch": "nothing of Keras or torch is changed here",
    "determined.profiler": (
        "set `profiling.enabled` in the config (docs/config.md), or use core_context.profiler"
    ),
    "determined.pytorch.PyTorchNativeContext": _NO_NATIVE,
    "determined.pytorch.PyTorchTrialController": _NO_HARNESS,
    "determined.pytorch.deepspeed.DeepSpeedTrialController": _NO_HARNESS,
    "determined.tensorboard.fetchers": "`det tensorboard start` shows the events of trials",
    "determined.util.check_sshd": _NO_HARNESS,
    "determined.util._dict_to_list": _NO_HARNESS,
    "determined.util._list_to_dict": _NO_HARNESS,
    "determined.util.forward_signals": "use signal.signal of Python",
    "determined.util.legacy_trial_entrypoint_to_script": _NO_HARNESS,
    "determined.util.make_metrics": _NO_HARNESS,
    "determined.util.match_legacy_trial_class": _NO_HARNESS,
    "determined.util.signal_process_tree": "start the program in a session of its own, and use os.killpg",
    "determined.util.write_user_code": "checkpoints of Trial classes have the code, in code/",
    "determined.workload": _NO_HARNESS,
    "determined_common": "use the package determined: determined.experimental.client is the client",
    "model_hub": _NO_MODEL_HUB,
}
"""What to use instead of each module, and of each attribute of one."""


def refuse(name: str) -> ImportError:
    """Returns the error of a name that is refused."""
    return ImportError(f"{name} is not available: {_REFUSED[name]}", name=name)


def attribute(module: str, name: str) -> Any:
    """Returns what a module has by an older name.

    Args:
        module: Name of the module, which calls this in its ``__getattr__``.
        name: What was asked for.

    Raises:
        ImportError: It is refused.
        AttributeError: No release had it.
    """
    if f"{module}.{name}" in _REFUSED:
        raise refuse(f"{module}.{name}")
    if f"{module}.{name}" in _SAME:
        return importlib.import_module(f"{module}.{name}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)


class OlderModules(MetaPathFinder, Loader):
    """Finds these modules, after all other finders: it hides no module that exists."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns a spec whose loader is this object; None for any other module."""
        return ModuleSpec(fullname, self) if fullname in _SAME or fullname in _REFUSED else None

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module that it is now in its place, or refuses it."""
        if module.__name__ in _REFUSED:
            raise refuse(module.__name__)
        sys.modules[module.__name__] = importlib.import_module(_SAME[module.__name__])
