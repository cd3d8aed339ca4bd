"""The contract of engines fails on broken ones: on that of docs/write-an-engine.md with one change each."""

from __future__ import annotations

import asyncio
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from support.engines import contract, session
from support.engines.session import ALLOCATION
from support.pages.commands import file_of

from resolute_engines.kit.run_directories.container import containers_in

_PAGE = "docs/write-an-engine.md"
_SECONDS = 20.0
"""How long a case waits here for what a broken engine never does, and a busy machine late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A change that breaks the engine."""

    old: str
    """Lines of the engine."""
    new: str
    """What stands there instead."""
    case: str
    """The case that fails."""
    failure: str
    """What the failure says, as a regular expression."""


BROKEN = {
    "reports a loss before all has ended": Broken(
        old="until_over(container)\n            report = await asyncio.to_thread(container.inspect)\n",
        new="until_over(container)\n            report = replace(container.never_started(), exit=None)\n",
        case="test_nothing_runs_any_more_when_a_loss_is_reported",
        failure="a process of the lost container runs",
    ),
    "watches only what it launched": Broken(
        old="                self._watch(container)\n            reports",
        new="                pass\n            reports",
        case="test_inspect_watches_what_an_earlier_life_launched",
        failure="in vain for the end",
    ),
    "launches only containers with slots": Broken(
        old="range(len(spec.placements))",
        new="range(sum(map(bool, spec.placements)))",
        case="test_an_allocation_may_have_no_slots",
        failure="in vain for the end",
    ),
    "stops the first container alone": Broken(
        old="allocation_id):\n            await asyncio.to_thread(container.terminate)",
        new="allocation_id)[:1]:\n            await asyncio.to_thread(container.terminate)",
        case="test_a_stop_reaches_every_container",
        failure="not seen within",
    ),
    "kills the first container alone": Broken(
        old="allocation_id):\n            await asyncio.to_thread(container.kill)",
        new="allocation_id)[:1]:\n            await asyncio.to_thread(container.kill)",
        case="test_a_kill_reaches_every_container",
        failure="in vain for the end",
    ),
    "has containers in no order": Broken(
        old="        return reports\n",
        new="        return reports[::-1]\n",
        case="test_inspect_has_the_containers_by_rank",
        failure="report.container_rank",
    ),
    "goes on with no release of an earlier life": Broken(
        old="        await self.backlog.resume()\n",
        new="",
        case="test_the_next_life_sends_and_removes_what_an_earlier_one_released",
        failure="in vain for the next life|not seen within",
    ),
    "sends with the last token of the run": Broken(
        old="release(allocation_id, token=token)",
        new='release(allocation_id, token="")',
        case="test_what_was_left_is_sent_with_the_token_of_the_release",
        failure="not seen within",
    ),
    "stops without a deadline": Broken(
        old="        self._late_kills.plan(allocation_id, grace=grace)\n",
        new="",
        case="test_a_stop_kills_what_outlasts_its_grace",
        failure="in vain for the end",
    ),
    "forgets what it has left": Broken(
        old="return self.backlog.leftovers()",
        new="return []",
        case="test_an_allocation_is_left_over_until_it_is_released",
        failure="leftovers",
    ),
}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """Where the run directories of a broken engine lie; nothing runs there after the test."""
    yield tmp_path / "runs"
    for container in containers_in(tmp_path / "runs", ALLOCATION):
        container.kill()
    for process in psutil.process_iter(["cmdline"]):
        # Those that send in vain would go on for as long as an outage may last.
        if any(word.startswith(str(tmp_path)) for word in process.info["cmdline"] or ()):
            process.kill()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_engine_fails_the_case_of_what_it_breaks(
    broken: Broken, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (contract, session):
        monkeypatch.setattr(module, "SECONDS", _SECONDS)
    source = file_of(_PAGE, "subprocess_engine.py")
    assert source.count(broken.old) == 1, "the page has another engine: break it in another way"
    engine = _module("subprocess_engine", source.replace(broken.old, broken.new))
    monkeypatch.setitem(sys.modules, engine.__name__, engine)
    tests = _module("test_contract", file_of(_PAGE, "test_contract.py"))
    case = getattr(tests.TestSubprocess(), broken.case)
    # The clean-up of a broken engine may not end within the time of a case either.
    with pytest.raises((AssertionError, asyncio.TimeoutError)) as failed:
        case(tests.UnderTest(runs))
    assert re.search(broken.failure, "".join(traceback.format_exception(failed.value)))


def _module(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"{_PAGE}: {name}.py", "exec"), module.__dict__)
    return module
