"""A real Kubernetes of one node on this machine, of the test's own.

Nobody packages one, so it is given by the environment: ``RESOLUTE_TEST_KUBE`` names a directory with the
scripts ``up.sh DIR --port N`` (starts one whose data is in ``DIR`` and whose ports begin at ``N``, and prints
the path of an administrator's kubeconfig last), ``down.sh DIR --purge`` and ``node.sh DIR kill|start`` (the
kubelet alone). ``DIR/run/enter COMMAND`` runs one where the node's containerd is. Pods of the image
``localhost/host:1`` mount the machine's ``/usr`` and run its programs. The API server listens at port ``N``,
its etcd without TLS at ``N + 1``, and ``KUBE_APISERVER_ARGS`` adds flags.
"""

from __future__ import annotations

import json
import os
import random
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
import yaml
from support.backends import missing
from support.pages.commands import yaml_of
from support.processes.suspension import suspend
from support.waiting import wait_until

ROOT = Path(__file__).parents[3]
VARIABLE = "RESOLUTE_TEST_KUBE"
HOST_POD: Mapping[str, Any] = {
    "spec": {
        "terminationGracePeriodSeconds": 10,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "host",
                "image": "localhost/host:1",
                "imagePullPolicy": "Never",
                "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
    }
}
"""A Pod that runs a program of this machine, once it is given a command."""
UNBOUND_TOKEN = "alice-token"
"""Token of a user who may do nothing until roles are bound to ``alice``."""
_START_SECONDS = 300.0
_END_SECONDS = 60.0
_ENTER_SECONDS = 300.0
_PORTS = 7


class KubernetesCluster:
    """A running Kubernetes.

    Args:
        scripts: Start and end it.
        directory: Holds all of it.
    """

    def __init__(self, scripts: Path, directory: Path) -> None:
        self._scripts = scripts
        self._directory = directory
        self._port = random.randrange(18_000, 30_000, _PORTS)
        self._api_servers: list[subprocess.Popen[bytes]] = []
        """Those that were started after the first."""
        self.kubeconfig = ""
        """Credentials of its administrator."""
        self.host = ""
        """Address of this machine that Pods reach, and nobody else does: that of the node."""

    def start(self) -> None:
        """Starts it; returns once its node is ready."""
        self.kubeconfig = self._run("up.sh", "--port", str(self._port)).splitlines()[-1]
        (node,) = self.call("/api/v1/nodes")["items"]
        addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
        self.host = addresses["InternalIP"]

    def pods(self) -> list[str]:
        """Names of all Pods in the default namespace."""
        listed = self.call("/api/v1/namespaces/default/pods")
        return [each["metadata"]["name"] for each in listed["items"]]

    def running_pods(self) -> list[str]:
        """Names of those whose containers all run."""
        listed = self.call("/api/v1/namespaces/default/pods")["items"]
        return [each["metadata"]["name"] for each in listed if _runs(each)]

    def evict(self, pod: str) -> None:
        """Evicts a Pod, as the drain of its node does."""
        body = {"metadata": {"name": pod}}
        self.call(f"/api/v1/namespaces/default/pods/{pod}/eviction", body)

    def call(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Calls the API server as its administrator: reads, or creates what a body says."""
        config = yaml.safe_load(Path(self.kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        asked = Request(
            cluster["server"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(asked, context=context, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def forget_versions(self, current: str) -> None:
        """Forgets every version before this one, as API servers do every few minutes."""
        asked = Request(
            f"http://127.0.0.1:{self._port + 1}/v3/kv/compaction",
            json.dumps({"revision": current, "physical": True}).encode(),
        )
        with urlopen(asked, timeout=60):
            pass

    def load_images(self, archive: Path) -> None:
        """Gives the node images from an archive as ``docker save`` writes it."""
        self._enter("ctr", "-n", "k8s.io", "images", "import", str(archive))

    def kill_kubelet(self) -> None:
        """Ends the node's kubelet: its Pods go on, and nobody hears of them."""
        self._run("node.sh", "kill")

    def start_kubelet(self) -> None:
        """Starts the node's kubelet again."""
        self._run("node.sh", "start")

    def kill_container(self, container_id: str) -> None:
        """Ends every process of a container, as a node that fails does.

        Args:
            container_id: As the status of its Pod has it.
        """
        self._tasks("kill", "--signal", "SIGKILL", container_id.removeprefix("containerd://"))

    def kill_pod(self, pod: str) -> None:
        """Ends every process of all containers of a Pod."""
        found = self.call(f"/api/v1/namespaces/default/pods/{pod}")
        for status in found["status"]["containerStatuses"]:
            self.kill_container(status["containerID"])

    def kill_all_containers(self) -> None:
        """Ends every container of the node, those that hold Pods together included."""
        for name in self._tasks("ls", "--quiet").split():
            # Who shares the processes of another goes with it.
            self._tasks("kill", "--signal", "SIGKILL", name, check=False)

    def _tasks(self, *arguments: str, check: bool = True) -> str:
        return self._enter("ctr", "-n", "k8s.io", "task", *arguments, check=check)

    def _enter(self, *command: str, check: bool = True) -> str:
        """Runs a command where the node's containerd is."""
        done = subprocess.run(
            [str(self._directory / "run/enter"), *command],
            check=check,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ENTER_SECONDS,
        )
        return done.stdout

    @contextmanager
    def killed_api_server(self) -> Iterator[None]:
        """An API server that is gone for a while; the next one is started as it was."""
        file = self._directory / "run/apiserver.pid"
        pid = int(file.read_text().split()[0])
        # Its pid file holds the start of the process too, by which down.sh knows it.
        process = psutil.Process(pid)
        command = process.cmdline()
        process.kill()
        try:
            wait_until(lambda: not _lives(process), what="the API server to be gone")
            yield
        finally:
            with (self._directory / "log/apiserver.log").open("ab") as log:
                started = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            status = Path(f"/proc/{started.pid}/stat").read_text()
            file.write_text(f"{started.pid} {status.rpartition(') ')[2].split()[19]}\n")
            self._api_servers.append(started)

    @contextmanager
    def silent_api_server(self) -> Iterator[None]:
        """An API server that answers nobody for a while, the node included."""
        pid = int((self._directory / "run/apiserver.pid").read_text().split()[0])
        suspend(pid)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @property
    def engine_options(self) -> dict[str, Any]:
        """Settings of an engine whose Pods run this installation."""
        # Root: in a container of the image without files nobody else may enter the topmost folder.
        return {"kubeconfig": self.kubeconfig, "python": sys.executable, "user": "0:0"}

    @property
    def pool_options(self) -> dict[str, Any]:
        """Settings of a pool whose Pods run the machine's programs."""
        places = {"usr": "/usr", "python": sys.base_prefix, "code": str(ROOT)}
        mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, path in places.items()]
        volumes = [{"name": name, "hostPath": {"path": path}} for name, path in places.items()]
        return {
            "image": "localhost/host:1",
            "slot_type": "cpu",
            "cpus_per_slot": 0.5,
            "pod_spec": {
                "spec": {
                    "containers": [{"name": "determined-container", "volumeMounts": mounts}],
                    "volumes": volumes,
                }
            },
        }

    def stop(self) -> None:
        """Ends everything that was started."""
        self._run("down.sh", "--purge")
        for server in self._api_servers:
            server.wait(_END_SECONDS)

    def _run(self, script: str, *arguments: str) -> str:
        log = self._directory.with_suffix(".log")
        with log.open("ab") as errors:
            done = subprocess.run(
                [self._scripts / script, self._directory, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # Watches of Pods come from etcd itself: then what it forgot is forgotten.
                env={**os.environ, "KUBE_APISERVER_ARGS": "--watch-cache-sizes=pods#0"},
                check=False,
                timeout=_START_SECONDS,
            )
        assert done.returncode == 0, f"{script} failed: {log.read_text()[-4000:]}"
        return done.stdout


def _runs(pod: Mapping[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses") or ()
    return bool(statuses) and all("running" in each["state"] for each in statuses)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def documented_rules() -> list[dict[str, Any]]:
    """The rules of the Role that the page gives the services."""
    (text,) = yaml_of("docs/kubernetes.md", having="kind: Role\n")
    (role,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "Role"]
    rules: list[dict[str, Any]] = role["rules"]
    return rules


@contextmanager
def running_kubernetes() -> Iterator[KubernetesCluster]:
    """A Kubernetes of its own; skips where none is given, or what it wants is not there."""
    given = os.environ.get(VARIABLE)
    if not given:
        missing(f"Kubernetes is missing: {VARIABLE} names a directory with scripts that start one")
    if os.geteuid() != 0:
        missing("a node of Kubernetes wants root")
    # Not pytest's own directory: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="kube-") as directory:
        cluster = KubernetesCluster(Path(given), Path(directory) / "k")
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
