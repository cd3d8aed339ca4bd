"""Checks of Kubernetes: permissions of the services, and a namespace that accepts the objects of a run."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from resolute.errors import ResoluteError
from resolute_embedded.doctor.engines.contact import page_of
from resolute_embedded.doctor.findings import Finding, Status, fault, good
from resolute_engines.kubernetes.connection import KubernetesApi
from resolute_engines.kubernetes.settings import KubernetesEngineOptions
from resolute_engines.settings import EngineSettings, parse_options

T = TypeVar("T")
RIGHTS = {
    "services": ("create", "get", "list", "patch", "delete"),
    "secrets": ("create",),
    "pods": ("create", "list", "watch", "patch", "deletecollection"),
}
"""What the services do in the namespace of the trials, by resource; docs/kubernetes.md has it as a Role."""
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def check_kubernetes(engine: EngineSettings) -> Iterator[Finding]:
    """Asks whether the services may do what they do, and whether a run's Service would be taken."""
    options = parse_options(KubernetesEngineOptions, engine.options, at=engine.where)
    rights = _rights(f"rights of engine {engine.name}", engine, options)
    yield rights
    if rights.status is Status.OK:
        yield _namespace(f"namespace of engine {engine.name}", options)


def _rights(subject: str, engine: EngineSettings, options: KubernetesEngineOptions) -> Finding:
    try:
        missing = asyncio.run(_with_api(options, _missing_rights))
    except ResoluteError as error:
        return fault(subject, str(error), remedy=page_of(engine))
    if missing:
        return fault(
            subject,
            f"in namespace {options.namespace} the services may not: {', '.join(missing)}",
            remedy="bind the Role of docs/kubernetes.md to their account in that namespace",
        )
    return good(subject, f"the services may do in namespace {options.namespace} what they need")


def _namespace(subject: str, options: KubernetesEngineOptions) -> Finding:
    try:
        asyncio.run(_with_api(options, _would_take))
    except ResoluteError as error:
        remedy = f"`kubectl create namespace {options.namespace}` if it is missing; else mend what refuses"
        return fault(subject, str(error), remedy=remedy)
    return good(subject, f"{options.namespace} takes what a run has")


async def _with_api(
    options: KubernetesEngineOptions, work: Callable[[KubernetesApi, str], Awaitable[T]]
) -> T:
    api = await KubernetesApi.connect(kubeconfig=options.kubeconfig, context=options.context)
    try:
        return await work(api, options.namespace)
    finally:
        await api.close()


async def _missing_rights(api: KubernetesApi, namespace: str) -> list[str]:
    return [
        f"{verb} {resource}"
        for resource, verbs in RIGHTS.items()
        for verb in verbs
        if not await _may(api, namespace, resource=resource, verb=verb)
    ]


async def _may(api: KubernetesApi, namespace: str, *, resource: str, verb: str) -> bool:
    attributes = {"namespace": namespace, "resource": resource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.create(_REVIEWS, review)
    return bool(answer.get("status", {}).get("allowed"))


async def _would_take(api: KubernetesApi, namespace: str) -> None:
    """Has the API server go through the creation of a Service, and keep nothing of it."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"resolute-doctor-{uuid.uuid4().hex[:8]}"},
        "spec": {"clusterIP": "None", "ports": [{"port": 1}]},
    }
    await api.create(f"/api/v1/namespaces/{namespace}/services?dryRun=All", service)
