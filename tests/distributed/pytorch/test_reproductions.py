"""Every example that claims exactness is run again without its cluster, to the same bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.backends import need_module
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

EXAMPLES = Path(__file__).parents[3] / "examples"
CLAIM = re.compile(
    r"bit[- ](?:for[- ]bit|identical)|exactly the same|(?:train|end)s? (?:the|with) (?:same|equal)",
    re.IGNORECASE,
)
"""What a text says that claims exactness."""
LIBRARIES = ("accelerate", "deepspeed", "horovod", "keras", "lightning", "timm", "transformers")
NEEDED = re.compile(rf"^\s*(?:import|from) ({'|'.join(LIBRARIES)})\b", re.MULTILINE)
TEXTS = frozenset({".md", ".py", ".yaml"})
STEPS = re.compile(r"have equal weights after (\d+) steps")


@dataclass(frozen=True)
class Claim:
    """A config of an example that claims exactness."""

    example: str
    config: str

    def __str__(self) -> str:
        return f"{self.example}/{self.config}"

    @property
    def folder(self) -> Path:
        return EXAMPLES / self.example

    @property
    def shortened(self) -> list[str]:
        """Options that let it train for a moment."""
        length = yaml.safe_load((self.folder / self.config).read_text())["searcher"]["max_length"]
        if isinstance(length, int):
            return ["--config", "searcher.max_length=2"]
        ((unit, _),) = length.items()
        return ["--config", f"searcher.max_length.{unit}={2 if unit == 'epochs' else 20}"]

    def libraries(self) -> set[str]:
        """What must be installed for it."""
        return {found for path in self.folder.glob("*.py") for found in NEEDED.findall(path.read_text())}


def claiming() -> list[str]:
    """The examples of which some text claims exactness."""
    folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
    return [folder.name for folder in folders if any(CLAIM.search(text) for text in texts_of(folder))]


def texts_of(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in TEXTS:
            # A claim may go on in the next line.
            yield " ".join(path.read_text().split())


def claims() -> list[Claim]:
    """The configs of those examples that train one trial."""
    return [
        Claim(example, path.name)
        for example in claiming()
        for path in sorted((EXAMPLES / example).glob("*.yaml"))
        if yaml.safe_load(path.read_text()).get("searcher", {}).get("name") == "single"
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def test_every_example_that_claims_exactness_is_run() -> None:
    found = claiming()
    assert {"digits", "deepspeed"} <= {*found}
    assert {*found} == {claim.example for claim in claims()}


@pytest.mark.parametrize("claim", claims(), ids=str)
def test_an_example_that_claims_exactness_is_reproduced_to_the_same_bits(
    cluster: EmbeddedCluster, tmp_path: Path, claim: Claim
) -> None:
    for library in sorted(claim.libraries()):
        need_module(library)
    said = cluster.det(
        "e", "create", claim.config, ".", "-f", *claim.shortened, cwd=claim.folder, timeout=300
    ).stdout
    number = re.search(r"Created experiment (\d+)", said)
    assert number, said
    with cluster.client() as client:
        experiment = client.get_experiment(int(number[1]))
        assert experiment.state is ExperimentState.COMPLETED, said
        (trial,) = experiment.list_trials()
    again = cluster.run("resolute", "reproduce", str(trial.id), "--run", cwd=tmp_path, timeout=300)
    steps = STEPS.search(again.stdout)
    assert steps, again.stdout
    assert int(steps[1]) > 0
