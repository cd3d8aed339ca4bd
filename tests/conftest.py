"""Options of all tests: how much of what is slow is run, and whether backends may be missing."""

from __future__ import annotations

import gc
import os
import secrets
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from support import backends
from support.logs import plain_logs
from support.suite.sampling import Sample, SampledRun
from support.suite.site_packages import UnchangedSitePackages
from support.suite.slow_tests import SlowTestNotes


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("resolute")
    group.addoption(
        "--whole", action="store_true", help="run every case of the tests that are otherwise sampled"
    )
    group.addoption(
        "--sample",
        action="store_true",
        help="sample also the tests that are named; without it only a run that names none is a sample",
    )
    group.addoption(
        "--note-slow", action="store_true", help="write down which tests are slow, in tests/slow_tests.txt"
    )
    group.addoption(
        "--sample-seed",
        default=os.environ.get("RESOLUTE_TEST_SEED"),
        help="choose the cases of the run that printed this seed ($RESOLUTE_TEST_SEED, or a new one)",
    )
    group.addoption(
        "--front",
        choices=("nginx", "envoy"),
        default="",
        help="put a proxy in front of the clusters of end-to-end tests: commands know its address alone",
    )
    group.addoption(
        "--guard-environment",
        action="store_true",
        help="fail if the run changes what is installed in the environment that it runs in",
    )
    group.addoption(
        "--require-backends",
        action="store_true",
        help="fail, rather than skip, tests whose database, object store, disk or launcher is missing",
    )


def is_sampled(config: pytest.Config) -> bool:
    """Whether this run leaves out what is slow: who names a test, a file or a folder wants all of it."""
    return bool(config.option.sample and not config.option.whole)


def pytest_configure(config: pytest.Config) -> None:
    # Tests start hundreds of processes: they shall find modules compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Imports leave hardly any garbage: looking for it took a third of the time of collecting.
    gc.disable()
    plain_logs()
    # Keras chooses TensorFlow by default, which only some tests install.
    os.environ.setdefault("KERAS_BACKEND", "torch")
    if config.option.sample_seed is None:
        given: dict[str, Any] = getattr(config, "workerinput", {})
        config.option.sample_seed = given.get("sample_seed") or secrets.token_hex(4)
    hypothesis.settings.register_profile(
        "resolute",
        max_examples=100 if config.option.whole else 40,
        # How fast examples are drawn and run is a matter of the machine.
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("resolute")
    if config.option.require_backends:
        backends.require_all()
    # A run that names nothing takes `testpaths`. Workers of xdist inherit this option.
    config.option.sample |= config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_sampled(config):
        config.pluginmanager.register(SampledRun(config.option.sample_seed))
    if config.option.guard_environment and not hasattr(config, "workerinput"):
        config.pluginmanager.register(UnchangedSitePackages())
    if config.option.note_slow and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SlowTestNotes(config.rootpath))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of xdist the seed of the process that starts it."""
    node.workerinput["sample_seed"] = node.config.option.sample_seed


def pytest_report_header(config: pytest.Config) -> str:
    if config.option.whole:
        return "samples: none, every case runs (--whole)"
    what = "tests and their cases" if is_sampled(config) else "cases within tests"
    return f"samples: of {what}; --sample-seed {config.option.sample_seed} chooses the same again"


def pytest_collection_finish() -> None:
    # What was imported stays: it needs no look either from now on.
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Adds what a command wrote that failed: its exception does not say that."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, subprocess.CalledProcessError | subprocess.TimeoutExpired):
        for name, output in (("output", error.stdout), ("errors", error.stderr)):
            text = output.decode(errors="replace") if isinstance(output, bytes) else output
            report.sections += [(f"{name} of the command", text)] if text else []
    return report


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    """Chooses the cases of a test that goes through many."""
    seed = f"{request.config.option.sample_seed}/{request.node.nodeid}"
    return Sample(seed, whole=request.config.option.whole)
