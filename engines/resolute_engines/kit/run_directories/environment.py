"""The environment variables of this process that supervisors, and so trials, inherit.

The process may have secrets of services in its environment: the URL of a database with its password, keys of
object stores, passwords of other programs. Every user who may submit an experiment could read the variables
that a trial inherits. So only variables that programs need to run are passed on, and those that the operator
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

SETTING = "RESOLUTE_TRIAL_VARIABLES"
"""Names further variables that trials inherit: names and patterns with ``*``, separated by commas."""

INHERITED: tuple[str, ...] = (
    # The machine, the user and the place in it.
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM"),
    *("TMPDIR", "TMP", "TEMP", "XDG_*"),
    # How programs find libraries and each other.
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHON*", "VIRTUAL_ENV", "CONDA_*", "MALLOC_*"),
    *(
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GRPC_*"),
    # Where spans go; the headers for it may hold a key, and are not inherited unless they are named.
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_CERTIFICATE"),
    # Accelerators, numerics and networks between ranks.
    *(
        "CUDA_*",
        "CUDNN_*",
        "CUBLAS_*",
        "NVIDIA_*",
        "NCCL_*",
        "ROCM_*",
        "ROCR_*",
        "HIP_*",
        "HSA_*",
        "MIOPEN_*",
    ),
    *("OMP_*", "MKL_*", "KMP_*", "OPENBLAS_*", "NUMEXPR_*", "NUMBA_*", "GLOO_*", "UCX_*", "FI_*", "OMPI_*"),
    # Frameworks, and where they keep downloaded data and models.
    *("TORCH_*", "PYTORCH_*", "TORCHINDUCTOR_*", "TRITON_*", "TF_*", "XLA_*", "JAX_*", "HOROVOD_*", "DS_*"),
    *("HF_*", "TRANSFORMERS_*", "DATASETS_*", "TOKENIZERS_*", "MPLBACKEND", "MPLCONFIGDIR"),
    # The platform's own that concern trials.
    *(
        "RESOLUTE_OPEN_FILES",
        "RESOLUTE_SPOOL_LIMIT",
        "RESOLUTE_OUTAGE_TIMEOUT_SECONDS",
        "RESOLUTE_PATIENCE_SECONDS",
        "RESOLUTE_CHECKPOINT_CACHE_*",
        "RESOLUTE_HOOK_CACHE_*",
    ),
)
"""Variables that trials inherit, as names and patterns."""

_SECRET = re.compile(
    r"(^|_)(TOKENS?|SECRETS?|PASSWORDS?|PASSWD|CREDENTIALS?|(API)?KEYS?)(_|$)", re.IGNORECASE
)


def supervisor_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns what a supervisor inherits of this process's environment.

    Args:
        variables: The environment of this process.

    Returns:
        The variables of ``INHERITED``, unless their names say that they are secrets, and those that
        ``SETTING`` names.
    """
    named = [pattern.strip() for pattern in variables.get(SETTING, "").split(",") if pattern.strip()]
    return {
        name: value
        for name, value in variables.items()
        if (_matches(name, INHERITED) and not _SECRET.search(name)) or _matches(name, named)
    }


def _matches(name: str, patterns: tuple[str, ...] | list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
