"""The Ray driver: a process that reads requests as lines of JSON on standard input, and answers them.

An allocation is a detached placement group with its name, and a detached actor for each of its containers.
Data that must outlive both is in Ray's key-value store, under the same name:

    group           number of containers; there since it was launched
    RANK:made       its actor was created, which happens once
    RANK:began      node of its actor; the first to write it starts the supervisor
    RANK:word       how its run ended; nothing of that lives any more
    RANK:over       whether all that it left was sent
    withdrawn       it was ended before any of it ran

It is started by its path, in an interpreter that may have only Ray. So it imports no other module of
Resolute, and sends the class of the actors to Ray's workers.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

try:
    import ray
except ModuleNotFoundError:
    sys.exit("the library ray is not here: pip install ray, in the version of the cluster")
import ray.exceptions
import ray.util
from ray.experimental.internal_kv import (
    _internal_kv_del,
    _internal_kv_get,
    _internal_kv_list,
    _internal_kv_put,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

NAMESPACE = "resolute"
"""Names of actors, groups and keys are unique in it."""
KEPT = "kept"
"""File of a container's folder whose lock its shim has, as in ``resolute_launch.actor.shim``."""
_ASK_SECONDS = 10.0
_BEGAN = '{"began": true}'
"""The termination message of a lost run, as in ``resolute.contracts.run.termination_message``."""
_TAIL_CHARACTERS = 2000
_OF_WORKERS = ("RAY_", "OMP_NUM_THREADS", "PYTHONBREAKPOINT")
"""How the names of variables begin that Ray sets for its workers, and that runs do not want."""


def put(key: str, value: str, *, overwrite: bool = True) -> bool:
    """Writes a key; returns whether it was there already."""
    return bool(
        _internal_kv_put(key.encode(), value.encode(), overwrite=overwrite, namespace=NAMESPACE.encode())
    )


def get(key: str) -> str | None:
    """Reads a key."""
    value = _internal_kv_get(key.encode(), namespace=NAMESPACE.encode())
    return None if value is None else value.decode()


def keys(prefix: str) -> list[str]:
    """Names every key that begins so."""
    raw = _internal_kv_list(prefix.encode(), namespace=NAMESPACE.encode())
    return [key.decode() for key in raw]


class Container:
    """The actor of one container: it starts a shim, passes commands to it, and stores its messages.

    Args:
        key: Prefix of the container's keys.
        order: The launch order, as JSON.
        python: Interpreter that has Resolute; empty for that of the worker.
        directory: Directory for the container's folder; empty for the node's directory of temporary files.
        prefix: Prefix of the folder's name.
    """

    def __init__(self, key: str, order: str, python: str, directory: str, prefix: str) -> None:
        self._key = key
        self._shim: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        if put(f"{key}:began", ray.get_runtime_context().get_node_id(), overwrite=False):
            return
        folder = ""
        try:
            folder, lock = make_folder(prefix, directory)
            try:
                self._shim = self._start(python or sys.executable, folder, lock)
            finally:
                # The shim holds it from now on.
                os.close(lock)
        except OSError as failure:
            if folder:
                shutil.rmtree(folder)
            self._end(f"{failure.filename}: {failure.strerror}", sent=True)
            return
        self.ask(order)
        threading.Thread(
            target=self._listen, args=(python or sys.executable, folder), name="shim", daemon=True
        ).start()

    def ask(self, word: str) -> None:
        """Passes a word to the shim: ``stop`` or ``kill``."""
        with self._lock:
            if self._shim is not None and self._shim.stdin is not None:
                try:
                    self._shim.stdin.write(f"{word}\n")
                    self._shim.stdin.flush()
                except OSError:
                    # It is gone: its answer, or the lack of one, is being recorded.
                    return

    def _start(self, python: str, folder: str, lock: int | None = None) -> subprocess.Popen[str]:
        held = () if lock is None else (lock,)
        return subprocess.Popen(
            [python, "-m", "resolute_launch.actor", folder, *(f"--lock-fd={each}" for each in held)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
            env=environment_of_runs(),
            start_new_session=True,
            pass_fds=held,
        )

    def _listen(self, python: str, folder: str) -> None:
        answers, complaint = self._read_answers()
        if not os.path.exists(os.path.join(folder, "run", "launch.json")):  # noqa: PTH110, PTH118
            # Nothing began there, or all that it left was sent.
            shutil.rmtree(folder, ignore_errors=True)
        elif "over" not in answers:
            answers = {"word": _BEGAN, **self._replace(python, folder), **answers}
        self._end(answers.get("word", complaint), sent=bool(answers.get("over", "word" not in answers)))

    def _replace(self, python: str, folder: str) -> dict[str, Any]:
        """Has another shim end and deliver the containers of a lost one; returns its answer."""
        try:
            with self._lock:
                self._shim = self._start(python, folder)
        except OSError:
            # Where the folder is gone, someone who looked for what was left has sent all of it.
            return {"over": not os.path.exists(folder)}  # noqa: PTH110
        return self._read_answers()[0]

    def _read_answers(self) -> tuple[dict[str, Any], str]:
        assert self._shim is not None and self._shim.stdout is not None  # noqa: PT018
        answers: dict[str, Any] = {}
        complaint = ""
        for line in self._shim.stdout:
            try:
                answers.update(json.loads(line))
            except (ValueError, TypeError):
                complaint = (complaint + line)[-_TAIL_CHARACTERS:]
            if "word" in answers:
                put(f"{self._key}:word", answers["word"])
        self._shim.wait()
        return answers, complaint

    def _end(self, word: str, *, sent: bool) -> None:
        put(f"{self._key}:word", word)
        put(f"{self._key}:over", json.dumps(sent))


def make_folder(prefix: str, directory: str) -> tuple[str, int]:
    """Makes the folder of a container, and locks it: one without a lock is taken for what a lost node left.

    Args:
        prefix: Begins its name.
        directory: Where it is made; empty for the node's own directory for that.

    Returns:
        The folder, and the descriptor of its lock.
    """
    while True:
        folder = tempfile.mkdtemp(prefix=prefix, dir=directory or None)
        # Who looks for what lost nodes left may have locked or removed it already.
        with suppress(FileNotFoundError):
            lock = os.open(os.path.join(folder, KEPT), os.O_RDWR | os.O_CREAT, 0o600)  # noqa: PTH118
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):  # noqa: PTH110
                return folder, lock
            os.close(lock)


def environment_of_runs() -> dict[str, str]:
    """This worker's variables, without those that are Ray's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_WORKERS)}


def keep_leftovers(python: str, directory: str, prefix: str) -> None:
    """Has someone on this node keep what was left there by shims that died with it.

    Args:
        python: Interpreter that has Resolute; empty for that of the worker.
        directory: Where folders of containers lie; empty for the node's own directory for that.
        prefix: Begins the names of those of the cluster.
    """
    subprocess.run(
        [
            *(python or sys.executable, "-m", "resolute_launch.actor"),
            *(directory or tempfile.gettempdir(), prefix),
        ],
        stdin=subprocess.DEVNULL,
        env=environment_of_runs(),
        start_new_session=True,
        check=True,
    )


def complaint_of(python: str, arguments: list[str]) -> str:
    """Runs an interpreter on this node; returns its output if it failed, else an empty text.

    Args:
        python: Interpreter that has Resolute; empty for that of the worker.
        arguments: What follows it.
    """
    try:
        done = subprocess.run(
            [python or sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment_of_runs(),
            check=False,
        )
    except OSError as failure:
        return f"{failure.filename}: {failure.strerror}"
    output = done.stdout.decode("utf-8", "replace").strip()[-_TAIL_CHARACTERS:]
    return "" if done.returncode == 0 else output or f"it exits with {done.returncode}"


class Allocations:
    """The allocations of one Resolute cluster.

    Args:
        prefix: Prefix of all its names.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._asked: set[str] = set()
        """The nodes that were asked for what shims left there."""

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that live, with their resources."""
        return [
            {"id": node["NodeID"], "resources": node["Resources"]} for node in ray.nodes() if node["Alive"]
        ]

    def keep_leftovers(self, python: str, directory: str) -> None:
        """Asks each node once for what shims left there that died with it; does not wait for them."""
        nodes = {node["id"] for node in self.nodes()}
        for node in nodes - self._asked:
            there = NodeAffinitySchedulingStrategy(node, soft=False)
            task = ray.remote(keep_leftovers).options(num_cpus=0, scheduling_strategy=there)
            task.remote(python, directory, self._prefix)
        self._asked = nodes

    def complaints(self, python: str, arguments: list[str], seconds: float) -> dict[str, str]:
        """What an interpreter says on each node, by the node's names; nothing where it runs well.

        Args:
            python: The interpreter; empty for that of Ray's workers.
            arguments: What follows it.
            seconds: How long to wait for nodes.
        """
        asked = {}
        for node in ray.nodes():
            if node["Alive"]:
                there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                task = ray.remote(complaint_of).options(num_cpus=0, scheduling_strategy=there)
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                asked[f"{name} {node['NodeID'][:6]}"] = task.remote(python, arguments)
        done, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=seconds)
        return {
            node: ray.get(one) if one in done else f"it did not answer in {seconds:g} s"
            for node, one in asked.items()
        }

    def launch(
        self, allocation: str, bundles: list[dict[str, float]], orders: list[str], python: str, directory: str
    ) -> None:
        """Makes what is missing of an allocation; what was made once is not made again."""
        name = self._name(allocation)
        put(f"{name}/group", str(len(bundles)), overwrite=False)
        if get(f"{name}/withdrawn") is not None:
            return
        missing = [rank for rank in range(len(bundles)) if get(f"{name}/{rank}:made") is None]
        group = self._group(name)
        if group is None and missing:
            group = ray.util.placement_group(
                bundles, strategy="STRICT_SPREAD", name=name, lifetime="detached"
            )
        for rank in missing:
            bundle = bundles[rank]
            rest = {each: amount for each, amount in bundle.items() if each not in ("CPU", "GPU")}
            ray.remote(Container).options(
                name=f"{name}/{rank}",
                lifetime="detached",
                get_if_exists=True,
                max_restarts=0,
                num_cpus=bundle.get("CPU", 0),
                num_gpus=bundle.get("GPU", 0),
                resources=rest,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=rank
                ),
            ).remote(f"{name}/{rank}", orders[rank], python, directory, self._prefix)
            put(f"{name}/{rank}:made", "")

    def look(self, allocations: list[str]) -> dict[str, Any]:
        """What is known of each allocation; None of one that was never launched, or removed."""
        # The actors first: what one wrote before it ended is seen after that.
        live, nodes = set(ray.util.list_named_actors()), {node["id"] for node in self.nodes()}
        return {allocation: self._look(self._name(allocation), live, nodes) for allocation in allocations}

    def _look(self, name: str, live: set[str], nodes: set[str]) -> dict[str, Any] | None:
        values = {key.rpartition("/")[2]: get(key) for key in keys(f"{name}/")}
        if values.get("group") is None:
            return None
        containers: list[dict[str, Any]] = []
        for rank in range(int(values["group"] or 0)):
            node, over = values.get(f"{rank}:began"), values.get(f"{rank}:over")
            containers.append(
                {
                    "live": f"{name}/{rank}" in live,
                    "made": f"{rank}:made" in values,
                    "began": node is not None,
                    "node_lost": node is not None and node not in nodes,
                    "word": values.get(f"{rank}:word"),
                    "over": None if over is None else json.loads(over),
                }
            )
        waits = any(each["live"] and not each["began"] for each in containers)
        group = self._group(name) if waits else None
        table = {} if group is None else ray.util.placement_group_table(group)
        return {
            "withdrawn": "withdrawn" in values,
            "placed": table.get("state") == "CREATED",
            "reason": table.get("stats", {}).get("scheduling_state", ""),
            "containers": containers,
        }

    def ask(self, allocation: str, word: str) -> None:
        """Passes a word to the shims of an allocation that have begun."""
        name = self._name(allocation)
        asked = [
            actor.ask.remote(word) for key, actor in self._actors(name) if get(f"{key}:began") is not None
        ]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=_ASK_SECONDS)

    def end(self, allocation: str, withdrawn: bool) -> None:
        """Ends the actors and the group of an allocation at once.

        Args:
            allocation: The allocation.
            withdrawn: Whether nothing of it is to have run.
        """
        name = self._name(allocation)
        if withdrawn:
            put(f"{name}/withdrawn", "")
        for _, actor in self._actors(name):
            ray.kill(actor)
        group = self._group(name)
        if group is not None:
            ray.util.remove_placement_group(group)

    def remove(self, allocation: str) -> None:
        """Removes all of an allocation."""
        self.end(allocation, withdrawn=False)
        prefix = f"{self._name(allocation)}/".encode()
        _internal_kv_del(prefix, del_by_prefix=True, namespace=NAMESPACE.encode())

    def names(self) -> list[str]:
        """Every allocation of which something is there: keys, actors or a group."""
        groups = ray.util.placement_group_table().values()
        names_of_all = {key.rpartition("/")[0] for key in keys(self._prefix)}
        names_of_all |= {actor.rpartition("/")[0] for actor in ray.util.list_named_actors()}
        names_of_all |= {group["name"] for group in groups if group["state"] != "REMOVED"}
        return [name.removeprefix(self._prefix) for name in names_of_all if name.startswith(self._prefix)]

    def _group(self, name: str) -> Any:
        try:
            return ray.util.get_placement_group(name)
        except ValueError:
            return None

    def _actors(self, name: str) -> list[tuple[str, Any]]:
        """The actors of an allocation that live, or will, with their names."""
        actors = []
        for actor in ray.util.list_named_actors():
            # One may end between the two questions.
            with suppress(ValueError):
                if actor.startswith(f"{name}/"):
                    actors.append((actor, ray.get_actor(actor)))
        return actors

    def _name(self, allocation: str) -> str:
        return f"{self._prefix}{allocation}"


def serve(address: str, prefix: str) -> None:
    """Answers until there are no more requests, or Ray cannot be reached.

    Args:
        address: ``host:port`` of Ray's head.
        prefix: Begins the names of all that the cluster has.
    """
    # Ray and its processes print what they like.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    questions = os.fdopen(os.dup(0), "r")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in questions:
            waiting.put(line)
        # The caller is gone, and Ray may not answer for long.
        os._exit(0)

    threading.Thread(target=read, name="questions", daemon=True).start()
    allocations = Allocations(prefix)
    calls: dict[str, Callable[..., Any]] = {
        "nodes": allocations.nodes,
        "keep_leftovers": allocations.keep_leftovers,
        "complaints": allocations.complaints,
        "launch": allocations.launch,
        "look": allocations.look,
        "ask": allocations.ask,
        "end": allocations.end,
        "remove": allocations.remove,
        "names": allocations.names,
    }
    while True:
        asked = json.loads(waiting.get())
        try:
            if not ray.is_initialized():
                ray.init(address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
            answer = {"answer": calls[asked["call"]](**asked["arguments"])}
        except Exception as failure:  # noqa: BLE001 - passed on to the caller
            known = isinstance(failure, OSError | RuntimeError | ray.exceptions.RayError)
            answer = {"failure": f"{type(failure).__name__}: {failure}", "away": known}
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:])
