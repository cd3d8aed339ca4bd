"""The Helm chart: what Helm says of it, what it renders, and what a real API server says of that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.backends import need_module
from support.daemons.kubernetes import KubernetesCluster, documented_rules

need_module("helm_python", remedy="`make engines` installs it")
need_module("kubernetes_asyncio", remedy="`make engines` installs it")

import helm_python  # noqa: E402 - wants what was asked for above

from resolute_checkpoints.settings import CheckpointSettings  # noqa: E402
from resolute_engines.environment import EngineEnvironment  # noqa: E402
from resolute_engines.plugins import create_engine  # noqa: E402
from resolute_engines.settings import read_resource_settings  # noqa: E402
from resolute_serving.server.settings import SERVICE_NAMES  # noqa: E402

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/resolute"
VALUES: dict[str, Any] = {
    "clusterId": "7d0f0f9e-2d6b-4b6b-9f3e-0d7a1b1f4c11",
    "trials": {"namespace": "trials"},
    "gateway": {
        "host": "resolute.example",
        "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "resolute-page"},
    },
    "checkpoints": {"buckets": ["checkpoints"], "secret": "resolute-store"},
    "image": {"pullSecrets": ["registry"]},
    "resources": {"requests": {"memory": "256Mi"}},
}
_WARNING = 2
_GROUPS = {
    "v1": "/api/v1",
    "apps/v1": "/apis/apps/v1",
    "networking.k8s.io/v1": "/apis/networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1": "/apis/rbac.authorization.k8s.io/v1",
}


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a release."""
    texts = helm_python.Chart.load(str(CHART)).render(values, name="team", namespace="default")
    return [each for text in texts.values() for each in yaml.safe_load_all(text) if each]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    """Objects of one kind by name."""
    return {each["metadata"]["name"]: each for each in rendered(VALUES) if each["kind"] == kind}


def test_helm_finds_nothing_wrong() -> None:
    found = helm_python.lint(str(CHART))
    assert found["errors"] == []
    assert [each for each in found["messages"] if each["severity"] >= _WARNING] == []


def test_a_cluster_without_an_id_is_not_rendered() -> None:
    with pytest.raises(helm_python.HelmError, match="clusterId"):
        rendered({})


@pytest.mark.parametrize(
    ("trials", "complaint"),
    [
        ({}, "name a namespace for trials"),
        ({"namespace": "default"}, "default has the Secrets of the services"),
    ],
)
def test_trials_are_not_put_beside_the_secrets_of_the_services(
    trials: dict[str, str], complaint: str
) -> None:
    with pytest.raises(helm_python.HelmError, match=complaint):
        rendered({**VALUES, "trials": trials})


def test_what_trials_may_mount_and_what_the_services_have_are_in_two_namespaces() -> None:
    by_namespace: dict[str, set[str]] = {}
    for each in rendered(VALUES):
        by_namespace.setdefault(each["metadata"].get("namespace", "default"), set()).add(each["kind"])
    assert by_namespace["trials"] == {"Role", "RoleBinding"}
    told = yaml.safe_load(of_kind("ConfigMap")["team-pools"]["data"]["resource-pools.yaml"])
    assert told["engines"]["kubernetes"]["namespace"] == "trials"


def test_schemas_of_current_versions_take_every_object() -> None:
    need_module("kubernetes_validate", remedy="`make engines` installs it")
    import kubernetes_validate

    for each in rendered(VALUES):
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_every_service_runs_at_the_port_at_which_the_others_call_it() -> None:
    deployments, services = of_kind("Deployment"), of_kind("Service")
    settings = of_kind("ConfigMap")["team-settings"]["data"]
    assert set(deployments) == set(services) == {f"team-{name}" for name in (*SERVICE_NAMES, "gateway")}
    for name in SERVICE_NAMES:
        (container,) = deployments[f"team-{name}"]["spec"]["template"]["spec"]["containers"]
        assert container["args"] == [name, "--upgrade"]
        variables = {each["name"]: each.get("value") for each in container["env"]}
        address = settings[f"RESOLUTE_{name.upper()}_ADDRESS"]
        assert address == f"team-{name}.default.svc:{variables['RESOLUTE_PORT']}"
        ports = {each["port"] for each in services[f"team-{name}"]["spec"]["ports"]}
        assert ports == {int(variables["RESOLUTE_PORT"] or 0)}
        selector = services[f"team-{name}"]["spec"]["selector"]
        assert selector == deployments[f"team-{name}"]["spec"]["template"]["metadata"]["labels"]


def test_every_setting_is_one_that_the_services_know() -> None:
    known = {
        *re.findall(
            r"RESOLUTE_[A-Z0-9_]+",
            "".join(
                path.read_text() for each in ("engines", "services") for path in (ROOT / each).rglob("*.py")
            ),
        ),
        # Made of a prefix and the name of a service.
        *(f"RESOLUTE_{name.upper()}_ADDRESS" for name in SERVICE_NAMES),
        # And of the store that it is for.
        "RESOLUTE_CHECKPOINTS_BUCKETS",
    }
    said = set(of_kind("ConfigMap")["team-settings"]["data"])
    for deployment in of_kind("Deployment").values():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        said |= {each["name"] for each in container["env"]}
    assert said <= known


def test_the_checkpoints_service_reads_the_buckets_that_are_named() -> None:
    named = ["s3://weights/team", "http://minio:9000/weights"]
    (deployment,) = [
        each
        for each in rendered({**VALUES, "checkpoints": {"buckets": named}})
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "team-checkpoints"
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value", "") for each in container["env"]}
    assert list(CheckpointSettings.from_environment(variables).roots.buckets) == named


def test_nothing_runs_as_root_or_writes_to_its_image() -> None:
    for deployment in of_kind("Deployment").values():
        spec = deployment["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_trials_run_by_the_account_of_the_experiments_service_with_the_documented_rights(
    tmp_path: Path,
) -> None:
    text = of_kind("ConfigMap")["team-pools"]["data"]["resource-pools.yaml"]
    told = yaml.safe_load(text)
    # The certificate lies in the Pod.
    told["engines"]["kubernetes"].pop("services_certificate")
    (tmp_path / "pools.yaml").write_text(yaml.safe_dump(told))
    (engine,) = read_resource_settings(tmp_path / "pools.yaml").engines
    environment = EngineEnvironment(
        cluster_id="a",
        address="",
        tls=None,
        outage_timeout=1.0,
        log_wait=1.0,
        runs_directory=tmp_path,
        slots=None,
        nodes=1,
    )
    assert [pool.name for pool in create_engine(engine, environment).pools()] == ["default"]
    assert of_kind("Role")["team-trials"]["rules"] == documented_rules()
    spec = of_kind("Deployment")["team-experiments"]["spec"]["template"]["spec"]
    (subject,) = of_kind("RoleBinding")["team-trials"]["subjects"]
    assert subject["name"] == spec["serviceAccountName"]


def test_an_api_server_takes_every_object(kubernetes: KubernetesCluster) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trials"}}
    kubernetes.call("/api/v1/namespaces", namespace)
    for each in rendered(VALUES):
        kind = each["kind"].lower()
        plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        where = f"namespaces/{each['metadata'].get('namespace', 'default')}/{plural}"
        # Nothing is stored.
        kubernetes.call(f"{_GROUPS[each['apiVersion']]}/{where}?dryRun=All", each)
