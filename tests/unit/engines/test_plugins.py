"""Types of engines that other distributions register, and types that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.settings import EngineSettings, PoolSettings

ENVIRONMENT = EngineEnvironment(
    cluster_id="cluster",
    address="127.0.0.1:1",
    tls=None,
    outage_timeout=60.0,
    log_wait=1.0,
    runs_directory=Path("runs"),
    slots=1,
    nodes=1,
)


def of_type(name: str) -> EngineSettings:
    """Settings of an engine of some type."""
    pool = PoolSettings(name="mine", options={}, where="resource_pools[0]")
    return EngineSettings(name="here", type=name, options={}, pools=(pool,))


def install(folder: Path, *, engine: str, module: str, code: str) -> None:
    """Installs a distribution that registers a type of engine."""
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[resolute.engines]\n{engine} = {module}:create_engine\n")
    (folder / f"{module}.py").write_text(code)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that Python finds distributions in."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_an_engine_of_another_distribution_is_made_of_its_settings(packages: Path) -> None:
    code = (
        "from resolute_engines.local.engine import LocalEngine\n"
        "def create_engine(settings, environment):\n"
        "    return LocalEngine(environment.runs_directory, slots=1, pool=settings.pools[0].name)\n"
    )
    install(packages, engine="elsewhere", module="elsewhere_engine", code=code)
    (pool,) = create_engine(of_type("elsewhere"), ENVIRONMENT).pools()
    assert pool.name == "mine"


def test_nothing_of_an_engine_is_imported_that_no_settings_name(packages: Path) -> None:
    install(packages, engine="broken", module="broken_engine", code="raise RuntimeError\n")
    create_engine(of_type("local"), ENVIRONMENT)
    assert "broken_engine" not in sys.modules


def test_a_type_that_is_not_registered_is_refused_with_those_that_are(packages: Path) -> None:
    install(packages, engine="elsewhere", module="another_engine", code="")
    types = "container, elsewhere, kubernetes, local, ray, slurm"
    expected = f"engines.here.type: found 'none'; expected one of: {types}"
    with pytest.raises(InvalidArgumentError, match=expected):
        create_engine(of_type("none"), ENVIRONMENT)


def test_a_type_that_two_distributions_register_is_refused_with_both(packages: Path) -> None:
    install(packages, engine="local", module="second_engine", code="")
    with pytest.raises(
        InvalidArgumentError, match=r"resolute_engines\.local.* and second_engine:create_engine"
    ):
        create_engine(of_type("local"), ENVIRONMENT)


def test_a_library_that_is_missing_is_named(packages: Path) -> None:
    install(packages, engine="elsewhere", module="needy_engine", code="import no_such_library\n")
    with pytest.raises(InvalidArgumentError, match="the library no_such_library is not here: install it"):
        create_engine(of_type("elsewhere"), ENVIRONMENT)


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (
            "def create_engine(settings, environment):\n    raise OSError('no licence')\n",
            "OSError: no licence",
        ),
        ("def create_engine(settings): ...\n", "TypeError: create_engine.. takes 1 positional argument"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_engine_of_others_that_cannot_be_made_is_one_sentence(
    packages: Path, monkeypatch: pytest.MonkeyPatch, code: str, failure: str
) -> None:
    monkeypatch.delitem(sys.modules, "failing_engine", raising=False)
    install(packages, engine="elsewhere", module="failing_engine", code=code)
    with pytest.raises(InvalidArgumentError, match=f"failing_engine:create_engine, which failed: {failure}"):
        create_engine(of_type("elsewhere"), ENVIRONMENT)


def test_an_entry_point_that_leads_nowhere_is_named(packages: Path) -> None:
    install(packages, engine="elsewhere", module="renamed_engine", code="def make_engine(): ...\n")
    expected = "'elsewhere' is registered as renamed_engine:create_engine, which is not there: .*no attribute"
    with pytest.raises(InvalidArgumentError, match=expected):
        create_engine(of_type("elsewhere"), ENVIRONMENT)
