"""Whom an API server lets in, what that one may do, and what is said where it cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.daemons.kubernetes import UNBOUND_TOKEN, documented_rules
from support.engines.pod_groups import (
    WAITS,
    Place,
    until,
)

from resolute.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_engines.kubernetes.client import KubernetesClient
from resolute_engines.kubernetes.connection import KubernetesApi
from resolute_engines.kubernetes.pods import GROUP_LABEL


def test_refusals_have_the_reason_of_kubernetes(place: Place, tmp_path: Path) -> None:
    stranger = replace(place, kubeconfig=_with_token(place, tmp_path, UNBOUND_TOKEN))
    unknown = replace(place, kubeconfig=_with_token(place, tmp_path, "none"))

    async def submit(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(WAITS))

    with pytest.raises(PermissionDeniedError, match='User "alice" cannot create resource "services"'):
        stranger.run(submit)
    with pytest.raises(UnauthenticatedError, match="Unauthorized"):
        unknown.run(submit)


def test_rights_that_are_documented_are_enough(place: Place, tmp_path: Path) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    binding = {
        "metadata": {"name": place.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": place.name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }

    async def bind(client: KubernetesClient, api: KubernetesApi) -> None:
        await api.create(f"{roles}/roles", {"metadata": {"name": place.name}, "rules": documented_rules()})
        await api.create(f"{roles}/rolebindings", binding)

    async def unbind(client: KubernetesClient, api: KubernetesApi) -> None:
        await api.delete(f"{roles}/rolebindings/{place.name}", {})
        await api.delete(f"{roles}/roles/{place.name}", {})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        async def bound() -> bool:
            try:
                await client.find(place.name)
            except PermissionDeniedError:
                return False
            return True

        # The API server's authorizer hears of roles a moment later.
        await until(bound, bool, what="the role")
        await client.submit(place.group(WAITS, WAITS, files={"order": b"x"}))
        watching = client.watch(selector=f"{GROUP_LABEL}={place.name}")
        assert (await anext(watching)).group == place.name
        await watching.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert list(await client.groups(selector=f"{GROUP_LABEL}={place.name}")) == [place.name]
        await client.ask(place.name, "stop")
        await client.end(place.name, grace_seconds=1)
        await client.delete(place.name)

    place.run(bind)
    try:
        replace(place, kubeconfig=_with_token(place, tmp_path, UNBOUND_TOKEN)).run(work)
    finally:
        place.run(unbind)


def test_token_that_was_replaced_in_its_file_is_read_again(place: Place, tmp_path: Path) -> None:
    kubeconfig = _with_token(place, tmp_path, "old")

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        _with_token(place, tmp_path, "admin-token")
        assert await client.find(place.name) is None

    replace(place, kubeconfig=kubeconfig).run(work)


def test_server_that_is_away_is_unavailable(place: Place, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(place.kubeconfig).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = tmp_path / "away"
    path.write_text(yaml.safe_dump(config))

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            await client.find(place.name)

    replace(place, kubeconfig=str(path)).run(work)
    with pytest.raises(FailedPreconditionError, match="credentials of Kubernetes cannot be read"):
        replace(place, kubeconfig=str(tmp_path / "none")).run(work)


def _with_token(place: Place, directory: Path, token: str) -> str:
    config: Mapping[str, Any] = yaml.safe_load(Path(place.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": token}
    path = directory / f"kubeconfig-{'of-alice' if token == UNBOUND_TOKEN else 'x'}"
    path.write_text(yaml.safe_dump(dict(config)))
    return str(path)
