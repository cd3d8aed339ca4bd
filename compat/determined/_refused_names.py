"""The replacements of Determined's names that do not exist here."""

from __future__ import annotations

from collections.abc import Mapping

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
_NO_DEFAULTS = "docs/config.md has the default of each field"
_NO_PORTS = "interfaces and ports are chosen by the launch layers (docs/launch.md)"
_CLIPPED = "give clip_grads to context.step_optimizer"
_KEPT_RANDOM_STATE = "DeterminedCallback and TFKerasTrial keep the state of random numbers in checkpoints"
REFUSED: Mapping[str, str] = {
    "determined.CallbackTrialController": _NO_HARNESS,
    "determined.DistributedContext": "it is determined.core.DistributedContext",
    "determined.EnvContext": _NO_HARNESS,
    "determined.LegacyTrial": "write a PyTorchTrial (docs/pytorch.md) or a TFKerasTrial (docs/keras.md)",
    "determined.LoopTrialController": _NO_HARNESS,
    "determined.NativeContext": _NO_NATIVE,
    "determined.RankInfo": "use core_context.distributed (docs/launch.md)",
    "determined.Trial": "write a PyTorchTrial (docs/pytorch.md) or a TFKerasTrial (docs/keras.md)",
    "determined.TrialController": _NO_HARNESS,
    "determined.callback": _NO_HARNESS,
    "determined.cli.tunnel": (
        "shells and notebooks are not there; `resolute command run` runs a command on slots"
    ),
    "determined.common.api.Authentication": _NO_SESSION,
    "determined.common.api.authentication": _NO_SESSION,
    "determined.common.api.certs": (
        "name the certificate in DET_MASTER_CERT_FILE, or by `cert_path` of client.login"
    ),
    "determined.common.api.logs": _NO_LOGS,
    "determined.common.api.metric": "use Trial.iter_metrics of determined.experimental.client",
    "determined.common.api.pprint_logs": _NO_LOGS,
    "determined.common.api.pprint_task_logs": _NO_LOGS,
    "determined.common.api.pprint_trial_logs": _NO_LOGS,
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
    "determined.common.experimental.Session": _NO_SESSION,
    "determined.common.experimental.session": _NO_SESSION,
    "determined.common.requests": _NO_HTTP,
    "determined.common.schemas": (
        "write the config as a dict, which client.create_experiment takes (docs/config.md)"
    ),
    "determined.common.set_logger": "use logging.basicConfig of Python",
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
    "determined.constants.DEFAULT_BATCHES_PER_STEP": _NO_DEFAULTS,
    "determined.constants.DEFAULT_EXP_CFG": _NO_DEFAULTS,
    "determined.constants.DEFAULT_OPTIMIZATIONS": _NO_DEFAULTS,
    "determined.constants.DEFAULT_RESOURCES_CFG": _NO_DEFAULTS,
    "determined.constants.DEFAULT_SCHEDULING_UNIT": _NO_DEFAULTS,
    "determined.constants.DEFAULT_SEARCHER_CFG": _NO_DEFAULTS,
    "determined.constants.EXPERIMENT_GLOBALS_KEY": _NO_HARNESS,
    "determined.constants.HOROVOD_GLOO_RENDEZVOUS_PORT": _NO_PORTS,
    "determined.constants.HOROVOD_SSH_PORT": _NO_PORTS,
    "determined.constants.INTER_TRAIN_PROCESS_COMM_PORT": _NO_PORTS,
    "determined.constants.LOCAL_RENDEZVOUS_PORT": _NO_PORTS,
    "determined.constants.MANAGED_TRAINING_MODEL_COPY": "the code of a trial lies in its working directory",
    "determined.constants.SHARED_FS_CONTAINER_PATH": (
        "use core_context.checkpoint, which knows where checkpoints lie"
    ),
    "determined.constants.TASK_ENV_REPO": "name the image in environment.image (docs/config.md)",
    "determined.constants.TRAIN_PROCESS_ENVIRONMENT_VARIABLE_PATH": _NO_HARNESS,
    "determined.constants.WORKDIR_CONTAINER_PATH": "the code of a trial lies in its working directory",
    "determined.core.DummyExperimentalCoreContext": "core.init gives a context off cluster, too",
    "determined.deploy": _NO_DEPLOY,
    "determined.estimator": _NO_ESTIMATORS,
    "determined.experimental.estimator": _NO_ESTIMATORS,
    "determined.experimental.init_native": _NO_NATIVE,
    "determined.experimental.keras": (
        "train by model.fit with determined.keras.DeterminedCallback, or write a "
        "determined.keras.TFKerasTrial (docs/keras.md)"
    ),
    "determined.gpu": "use torch.cuda, or nvidia-smi",
    "determined.horovod.HorovodContext": "use context.distributed (docs/launch.md)",
    "determined.horovod.create_network_interface_arg_if_specified": _NO_PORTS,
    "determined.ipc": "use allgather, gather and broadcast of core_context.distributed",
    "determined.keras.TFKerasContext": (
        "write a determined.keras.TFKerasTrial, whose context is a TFKerasTrialContext"
    ),
    "determined.keras.TFKerasNativeContext": _NO_NATIVE,
    "determined.keras.TFKerasTrialController": _NO_HARNESS,
    "determined.keras.get_rng_state": _KEPT_RANDOM_STATE,
    "determined.keras.set_rng_state": _KEPT_RANDOM_STATE,
    "determined.layers": _NO_HARNESS,
    "determined.load": _NO_HARNESS,
    "determined.monkey_patch": "nothing of Keras or torch is changed here",
    "determined.profile": "use cProfile of Python, or core_context.profiler",
    "determined.profiler": (
        "set `profiling.enabled` in the config (docs/config.md), or use core_context.profiler"
    ),
    "determined.pytorch.ClipGradsL2Norm": _CLIPPED,
    "determined.pytorch.ClipGradsL2Value": _CLIPPED,
    "determined.pytorch.PyTorchNativeContext": _NO_NATIVE,
    "determined.pytorch.PyTorchTrialController": _NO_HARNESS,
    "determined.pytorch.deepspeed.DeepSpeedTrialController": _NO_HARNESS,
    "determined.tensorboard.fetchers": "`det tensorboard start` shows the events of trials",
    "determined.tensorpack": "write a PyTorchTrial (docs/pytorch.md), or a script with the Core API",
    "determined.util.T": "use typing.TypeVar of Python",
    "determined.util._dict_to_list": _NO_HARNESS,
    "determined.util._list_to_dict": _NO_HARNESS,
    "determined.util.check_sshd": _NO_HARNESS,
    "determined.util.deprecated": "use warnings.warn of Python",
    "determined.util.forward_signals": "use signal.signal of Python",
    "determined.util.legacy_trial_entrypoint_to_script": _NO_HARNESS,
    "determined.util.make_metrics": _NO_HARNESS,
    "determined.util.match_legacy_trial_class": _NO_HARNESS,
    "determined.util.signal_process_tree": "start the program in a session of its own, and use os.killpg",
    "determined.util.validate_batch_metrics": _NO_HARNESS,
    "determined.util.wrap_metrics": _NO_HARNESS,
    "determined.util.write_checkpoint_metadata": "give metadata to core_context.checkpoint.upload",
    "determined.util.write_user_code": "checkpoints of Trial classes have the code, in code/",
    "determined.workload": _NO_HARNESS,
    "determined_cli": "run `det`, or use determined.experimental.client",
    "determined_common": "use the package determined: determined.experimental.client is the client",
    "determined_deploy": _NO_DEPLOY,
    "model_hub": _NO_MODEL_HUB,
}
"""What to use instead of each module, and of each attribute of one."""

LIBRARIES: Mapping[str, str] = {
    "det": "import determined as det",
    "Path": "from pathlib import Path",
    "logger": 'logger = logging.getLogger("determined")',
    "metadata": "from importlib import metadata",
    "np": "import numpy as np",
    "psutil": "import psutil",
    "requests": "import requests",
    "simplejson": "import json",
    "tf": "import tensorflow as tf",
    "torch": "import torch",
    "urllib3": "import urllib3",
    "version": "from packaging import version",
    "yaml": "import yaml",
}
"""How to import what modules had because they imported it themselves."""

WITHIN: Mapping[str, str] = {
    "determined.errors": "it has the errors that training scripts raise and catch",
    "determined.cli": (
        "it belongs to the commands; run `det`, call determined.cli.main, or use "
        "determined.experimental.client"
    ),
    "determined.common": "it was for Determined's own use; determined.experimental.client is the client",
    "determined.common.api": _NO_HTTP,
    "determined.common.experimental": "determined.experimental.client has what programs call",
    "determined.exec": _NO_HARNESS,
    "determined.experimental": "docs/client.md has what the client has, docs/core-v2.md what core_v2 has",
    "determined.horovod": "it has hvd; docs/launch.md says how workers start",
    "determined.keras": "docs/keras.md has what there is for Keras",
    "determined.launch": "run the launch layer as a program: python3 -m determined.launch.… (docs/launch.md)",
    "determined.lightning": "docs/integrations.md has what there is for Lightning",
    "determined.pytorch": "docs/pytorch.md has what there is for PyTorch",
    "determined.pytorch.dsat": "python3 -m determined.pytorch.dsat searches (docs/deepspeed.md)",
    "determined.tensorboard": "determined.tensorboard itself has the writers, the manager and the paths",
    "determined.util": "docs/from-determined.md names the functions that are in it",
}
"""What to use instead of whatever else was in each package."""
