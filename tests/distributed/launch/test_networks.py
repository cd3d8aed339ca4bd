"""Each layer between two networks that share nothing but a cable, not even the loopback, as machines do.

The parts of one launch run in a network namespace each. Everything lies within namespaces of the test, which
needs no privileges where the kernel lets users have them, and leaves nothing behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.backends import missing, need_module
from support.clusters.cluster_info import cluster_of
from support.ports import free_port

OF_ITS_OWN = [
    *("unshare", "--map-root-user", "--net", "--mount"),
    # With process ids of its own, all of it ends with its first process.
    *("--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-ec"),
]
SETUP = """
mount -t tmpfs none /run
mkdir /run/netns
ip netns add other
ip link add near type veth peer name far netns other
ip address add 10.77.0.1/24 dev near
ip -n other address add 10.77.0.2/24 dev far
for link in lo near; do ip link set $link up; done
for link in lo far; do ip -n other link set $link up; done
"""
PARTS = """
mount --bind $HOSTS /etc/hosts
part() {
  export RESOLUTE_INFO_DIR=$DIRECTORY/$1 RESOLUTE_RUN_DIR=$DIRECTORY/$1 NAME=machine$1
  shift
  "$@" unshare --uts sh -ec 'hostname $NAME; exec "$PYTHON" -m resolute_launch.$LAYER -- "$PYTHON" $RANKS'
}
part 0 env & first=$!
part 1 nsenter --net=/run/netns/other
wait $first
"""
NAMED_BY_NETWORK = "10.77.0.1 machine0\n10.77.0.2 machine1\n"
NAMED_BY_LOOPBACK = "127.0.1.1 machine0\n127.0.1.1 machine1\n"
"""As installers of some systems write it."""


@pytest.fixture(autouse=True)
def namespaces() -> None:
    """Networks of their own for two machines."""
    if subprocess.run([*OF_ITS_OWN, SETUP], capture_output=True, check=False).returncode != 0:
        missing("this machine allows no network namespaces (run as root)")


def launch(layer: str, directory: Path, *, hosts: str) -> subprocess.CompletedProcess[str]:
    """Launches two ranks, one in each network."""
    for rank in (0, 1):
        (directory / str(rank)).mkdir()
        cluster_of("10.77.0.1", "10.77.0.2", rank=rank).write(directory / str(rank))
    (directory / "hosts").write_text(hosts)
    environment = {
        **os.environ,
        "DIRECTORY": str(directory),
        "HOSTS": str(directory / "hosts"),
        "LAYER": layer,
        "PYTHON": sys.executable,
        "RANKS": str(Path(__file__).with_name("network_ranks.py")),
        "OMP_NUM_THREADS": "1",
        "C10D_PORT": str(free_port()),
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
        "RESOLUTE_COLLECTIVE_KEY": "key of this launch",
    }
    return subprocess.run(
        [*OF_ITS_OWN, SETUP + PARTS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("layer", "hosts"),
    [
        ("torch_distributed", NAMED_BY_LOOPBACK),
        ("deepspeed", NAMED_BY_LOOPBACK),
        ("horovod", NAMED_BY_NETWORK),
    ],
)
def test_ranks_of_two_machines_find_each_other(layer: str, hosts: str, tmp_path: Path) -> None:
    if layer != "torch_distributed":
        need_module(layer)
    done = launch(layer, tmp_path, hosts=hosts)
    assert done.returncode == 0, done.stderr
    # Launchers say things of their own.
    said = sorted(line for line in done.stdout.splitlines() if "[rank=" in line)
    assert said == [f"[rank={rank}] sum 3.0 ranks [0, 1]" for rank in (0, 1)]


def test_a_machine_whose_name_is_the_loopbacks_is_told_that_horovod_looks_it_up(tmp_path: Path) -> None:
    need_module("horovod")
    done = launch("horovod", tmp_path, hosts=NAMED_BY_LOOPBACK)
    assert done.returncode == 1
    assert "the name of this machine, machine1, stands for 127.0.1.1" in done.stderr
