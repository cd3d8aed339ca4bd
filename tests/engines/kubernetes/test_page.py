"""A whole cluster whose trials are Pods of a real Kubernetes, by the commands of its page."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.backends import missing, need_module
from support.daemons.kubernetes import KubernetesCluster
from support.pages.commands import blocks_of, run_script, script_of
from support.ports import free_port

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

PAGE = "docs/kubernetes.md"
AFTERWARDS = """
resolute e list-trials 1
resolute e list-checkpoints 1
# What a run asks Kubernetes for besides: a notice to a Pod, and the end of one.
begin() {
    resolute e create 2_checkpoints.yaml . --config resources.resource_pool=pods --config CHECKPOINTS \
        --config searcher.max_length="$1"
}
until_it_trains() { until [[ "$(resolute t logs "$1")" = *steps* ]]; do sleep 1; done; }
# Long enough that the pause comes in time on a slow machine.
begin 2000
until_it_trains 5
resolute e pause 2
until resolute e list | grep PAUSED; do sleep 1; done
resolute e activate 2
resolute e wait 2
resolute t describe 5
begin 5000
until_it_trains 6
resolute e kill 3
until resolute e list | grep CANCELED; do sleep 1; done
resolute e list
there() { kubectl --namespace training get pods,services,secrets --selector resolute/cluster --output name; }
until [ -z "$(there)" ]; do sleep 1; done
# All that the services have of Kubernetes.
refused() { [ "$(kubectl --kubeconfig KUBECONFIG auth can-i "$@")" = no ]; }
refused get secrets --namespace training
refused get pods/log --namespace training
refused create pods --namespace default
refused get secrets --namespace resolute
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory for what Pods mount; not pytest's, whose parents others may not enter."""
    if shutil.which("kubectl") is None:
        missing("kubectl is not here: tools/install_engines.sh installs it")
    with tempfile.TemporaryDirectory(prefix="page-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@pytest.mark.timeout(1000)
def test_the_commands_of_the_page_lead_from_the_rights_to_a_search(
    kubernetes: KubernetesCluster, folder: Path, tmp_path: Path
) -> None:
    storage, kubeconfig = folder / "checkpoints", folder / "etc/kubeconfig"
    script = _with_names_of_here(script_of(PAGE), kubernetes, storage=storage, settings=kubeconfig.parent)
    afterwards = AFTERWARDS.replace("KUBECONFIG", str(kubeconfig))
    script += afterwards.replace("CHECKPOINTS", f"checkpoint_storage.host_path={storage}")
    said = run_script(script, tmp_path, timeout=900, variables={"KUBECONFIG": kubernetes.kubeconfig})
    assert "the services may do in namespace training what they need" in said
    assert len(re.findall(r"\bCOMPLETED\b", _answer(said, "resolute e list-trials 1"))) == 4
    assert re.search(r"\bCOMPLETED\b", _answer(said, "resolute e list-checkpoints 1"))
    assert re.search(r"\bpods\b", _answer(said, "resolute resource-pool list"))
    assert re.findall(r"PREEMPTED|COMPLETED", _answer(said, "resolute t describe 5")) == [
        "COMPLETED",
        "PREEMPTED",
        "COMPLETED",
    ]


def test_only_installations_and_the_chart_are_left_out_of_the_page() -> None:
    left_out = [block for block in blocks_of(PAGE) if block.reason]
    installed, *others = left_out
    assert "pip install" in installed.code
    assert all("cluster" in block.reason for block in others)
    assert len(others) == 2


def _answer(said: str, command: str) -> str:
    """What a command of the script said last."""
    return said.rpartition(f"+ {command}\n")[2].partition("\n+ ")[0]


def _with_names_of_here(script: str, kubernetes: KubernetesCluster, *, storage: Path, settings: Path) -> str:
    spec = kubernetes.pool_options["pod_spec"]["spec"]
    (container,) = spec["containers"]
    here = {
        # There is no registry: Pods have the programs of this machine, whose image wants root.
        "registry.example/resolute-trial-cpu\n    pod_spec": "localhost/host:1\n    pod_spec",
        "volumeMounts:\n": "volumeMounts:\n" + _items(container["volumeMounts"], indent=14),
        "volumes:\n": "volumes:\n" + _items(spec["volumes"], indent=10),
        'user: "1000:1000"': f'user: "0:0"\n    python: {sys.executable}',
        "-o 1000 -g 1000": "-o 0 -g 0",
        "nfs: {server: 10.0.0.5, path: /srv/checkpoints}": f"hostPath: {{path: {storage}}}",
        "10.0.0.5": kubernetes.host,
        "8080": str(free_port()),
        "/srv/checkpoints": str(storage),
        "/etc/resolute": str(settings),
    }
    for named, found in here.items():
        assert named in script
        script = script.replace(named, found)
    return script


def _items(values: Sequence[object], *, indent: int) -> str:
    # JSON is YAML.
    return "".join(f"{' ' * indent}- {json.dumps(one)}\n" for one in values)
