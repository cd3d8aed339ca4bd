"""Creates a Kubernetes engine from its settings."""

from __future__ import annotations

from functools import partial

from resolute_engines.environment import EngineEnvironment
from resolute_engines.kubernetes.connection import KubernetesApi
from resolute_engines.kubernetes.engine import KubernetesEngine
from resolute_engines.kubernetes.objects import check_name
from resolute_engines.kubernetes.settings import KubernetesEngineOptions, KubernetesPoolOptions
from resolute_engines.protocol import Engine
from resolute_engines.settings import EngineSettings, parse_options


def create_engine(settings: EngineSettings, environment: EngineEnvironment) -> Engine:
    """Makes an engine of Kubernetes; calls nothing yet.

    Raises:
        InvalidArgumentError: The settings are wrong; the error lists every fault.
        FailedPreconditionError: The certificate cannot be read.
    """
    options = parse_options(KubernetesEngineOptions, settings.options, at=settings.where)
    check_name(options.namespace)
    pools = {
        pool.name: parse_options(KubernetesPoolOptions, pool.options, at=pool.where)
        for pool in settings.pools
    }
    return KubernetesEngine(
        partial(KubernetesApi.connect, kubeconfig=options.kubeconfig, context=options.context),
        options=options,
        pools=pools,
        terms=environment.terms(options.services_address, options.services_certificate),
        cluster_id=environment.cluster_id,
    )
