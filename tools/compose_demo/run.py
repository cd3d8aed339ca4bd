"""The search of `make demo` on deploy/compose.yaml: ``python tools/compose_demo/run.py``.

It builds the images that are missing, starts the compose file with Podman under a name of its own, submits
the search by the command line through the gateway with TLS, follows it, and compares the best trial with
what `make demo` found, if that has run. Whatever happens, nothing that it started is left running. Everything
lies below build/compose-demo.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from image_build.commands import ROOT

from compose_demo import engine, images
from compose_demo.cluster import ComposeCluster
from resolute.client import Client
from resolute_embedded import demo

DIGITS = ROOT / "examples/digits"
BUILD = ROOT / "build/compose-demo"
DEMO_BEST = ROOT / "build/resolute-demo/best.json"
CACHE = ROOT / ".cache/images"
_CALL_SECONDS = 120.0


def main() -> int:
    """Runs the demonstration; returns its exit code."""
    _forget_other_clusters()
    # Another checkout has another name, and may run at the same time.
    project = f"resolute-demo-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
    BUILD.mkdir(parents=True, exist_ok=True)
    with _alone(BUILD / "lock"):
        engine.use_own_settings(BUILD)
        with _timed("images"):
            built = images.build_missing(CACHE)
        runtime = _runtime(built)
        with engine.bridge(project, built.services) as host, engine.serving(BUILD) as socket:
            cluster = ComposeCluster.of(
                project, BUILD, host=host, images=built, socket=socket, runtime=runtime
            )
            code = _search_on(cluster)
    return code or _compare()


def _search_on(cluster: ComposeCluster) -> int:
    """Starts a cluster, searches, and ends it; returns the exit code."""
    cluster.stop()
    try:
        with _timed("start"):
            variables = cluster.start()
        os.environ.update(variables)
        _look_at_page(cluster)
        with _timed("search"):
            return _search(cluster)
    except BaseException:
        sys.stderr.write(
            f"the demonstration failed; the output of its containers is in {cluster.keep_logs()}\n"
        )
        raise
    finally:
        with _timed("end"):
            cluster.stop()


def _search(cluster: ComposeCluster) -> int:
    """Submits the search of `make demo`, follows it and fetches its best model."""
    storage = {"type": "s3", "bucket": "checkpoints", "endpoint_url": cluster.store}
    submit: list[str | Path] = ["experiment", "create", DIGITS / "adaptive.yaml", DIGITS, "--json"]
    submit += ["--config", f"checkpoint_storage={json.dumps(storage)}"]
    created = json.loads(_resolute(*submit))
    with Client() as client:
        experiment = client.get_experiment(int(created["id"]))
        sys.stdout.write(f"Created experiment {experiment.id}: {experiment.name}\n")
        with demo.killed_if_abandoned(experiment):
            demo.follow(experiment)
        return demo.report(experiment, BUILD)


def _compare() -> int:
    """Compares the best trial with that of `make demo`, if that has run; returns the exit code."""
    ours, theirs = BUILD / "best.json", DEMO_BEST
    if not theirs.exists():
        names = " ".join(str(path.relative_to(ROOT)) for path in (ours, theirs))
        sys.stdout.write(f"not compared with `make demo`, which has not run: run it, and `diff {names}`\n")
        return 0
    here, there = json.loads(ours.read_text()), json.loads(theirs.read_text())
    if here == there:
        sys.stdout.write(
            f"The best trial is that of `make demo`: accuracy {here['accuracy']:.4f}, seed {here['seed']}\n"
        )
        return 0
    sys.stdout.write(
        f"the best trial is another than that of `make demo`\n  here:  {here}\n  there: {there}\n"
    )
    return 1


def _look_at_page(cluster: ComposeCluster) -> None:
    """Fetches the page by TLS, trusting the cluster's authority alone."""
    trusted = ssl.create_default_context(cafile=os.environ["DET_MASTER_CERT_FILE"])
    asked = urllib.request.Request(f"{cluster.page}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, context=trusted, timeout=_CALL_SECONDS) as answer:
        text = answer.read().decode()
    if "<html" not in text:
        raise SystemExit(f"{cluster.page} serves no page: {text[:200]}")
    sys.stdout.write(f"The page is at {cluster.page} until the search ends\n")


def _resolute(*arguments: str | Path) -> str:
    """Runs the command line; returns what it printed."""
    program = Path(sys.executable).with_name("resolute")
    done = subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, text=True, check=False, timeout=_CALL_SECONDS
    )
    if done.returncode != 0:
        raise SystemExit(f"resolute {arguments[0]} {arguments[1]} ended with {done.returncode}")
    return done.stdout


def _runtime(built: images.Images) -> Path:
    """Makes the runtime of trials for the images' Python, anew for each build."""
    folder = BUILD / "runtime" / built.services.rpartition(":")[2]
    if not folder.exists():
        shutil.rmtree(folder.parent, ignore_errors=True)
        module = "resolute_engines.container.runtime"
        subprocess.run([sys.executable, "-m", module, folder], check=True, timeout=_CALL_SECONDS)
    return folder


def _forget_other_clusters() -> None:
    for name in [name for name in os.environ if name.startswith(("RESOLUTE_", "DET_"))]:
        del os.environ[name]


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Holds a lock, so that no other demonstration of this checkout ends what this one starts."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"{path} is locked: this demonstration runs already; wait for its end") from None
        yield


@contextlib.contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    sys.stdout.write(f"[{what}: {time.monotonic() - began:.0f} s]\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs, as on Ctrl-C
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
