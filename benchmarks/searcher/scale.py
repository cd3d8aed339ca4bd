"""What a search of many trials costs: for each event, and as a whole.

    python benchmarks/searcher/scale.py [--trials N] [--json]

- ``event``: cost of an event after 100, 10 000 and 100 000 finished trials, once decided in memory and once
  made durable (SQLite, fsynced, 16 trials at once); processor time, the median of several windows
- ``load``: processor time to read a search of so many trials into memory: from its whole log, from a snapshot
  just made, and from one so old that the next is due; with the snapshot's size and what making it costs
- ``whole``: a simulated adaptive ASHA on one core, with the memory of each trial
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import say
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import TrialClosed, ValidationCompleted
from resolute_searcher.planning.curves import SyntheticCurves
from resolute_searcher.planning.simulation import simulate
from resolute_searcher.runtime.live_searches import Change, LiveSearches
from resolute_searcher.runtime.snapshotter import advance_snapshot
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.store import log, repository, search_rows, snapshots
from resolute_searcher.store.fingerprint import fingerprint
from resolute_searcher.store.log import NewEntry
from resolute_searcher.store.snapshots import Snapshot, StoredEntry
from resolute_searcher.wire.spec import spec_from
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
MOST_GROWTH = 1.15
MOST_SECONDS = 60.0
_WINDOW = 2000  # events
_WINDOWS = 5


@dataclass(frozen=True)
class Load:
    """Seconds to read a search into memory, and what its snapshot is."""

    entries: int
    whole_log: float
    new_snapshot: float
    old_snapshot: float
    making: float
    snapshot_bytes: int


@dataclass
class Costs:
    """Microseconds an event by finished trials, and the whole search."""

    trials: int
    decided_us: dict[int, float] = field(default_factory=dict)
    durable_us: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    events: int = 0
    bytes_a_trial: float = 0.0
    loads: dict[int, Load] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """What a person reads."""
        found = []
        for name, costs in (("decided", self.decided_us), ("durable", self.durable_us)):
            told = "   ".join(f"{trials:>7} trials {cost:7.1f} us" for trials, cost in costs.items())
            found.append(
                f"{name} {told}   largest / smallest {max(costs.values()) / min(costs.values()):.2f}"
            )
        found += [
            f"load    {trials:>7} trials, {one.entries} events: {one.whole_log:.2f} s from the log, "
            f"{one.new_snapshot:.2f} s from a new snapshot, {one.old_snapshot:.2f} s from the oldest used   "
            f"{one.whole_log / one.old_snapshot:.1f}x   {one.snapshot_bytes / 1e6:.1f} MB made in "
            f"{one.making:.2f} s"
            for trials, one in self.loads.items()
        ]
        found.append(
            f"whole   {self.trials} trials, {self.events} events in {self.seconds:.1f} s of processor time; "
            f"{self.bytes_a_trial:.0f} bytes a trial"
        )
        return found


def asked(trials: int) -> spec_pb.SearchSpec:
    """An adaptive search of one bracket, so that the mix of events does not change on its way."""
    axis = spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0.0, maxval=1.0))
    return spec_pb.SearchSpec(
        metric="loss",
        smaller_is_better=True,
        seed=7,
        space=spec_pb.Space(hyperparameters={"x": axis, "y": axis}),
        adaptive_asha=spec_pb.AdaptiveAshaMethod(
            max_length=1024,
            max_trials=trials,
            divisor=4.0,
            max_rungs=5,
            max_concurrent_trials=16,
            mode=spec_pb.ADAPTIVE_MODE_STANDARD,
            stop_once=True,
        ),
    )


def whole(costs: Costs) -> None:
    """Simulates the search once for its time and memory, and once more to look at its windows."""
    spec = spec_from(asked(costs.trials))
    curves = SyntheticCurves(spec.space, max_length=1024)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    told = simulate(spec, curves)
    costs.seconds = time.process_time() - began
    costs.events = told.events
    costs.bytes_a_trial = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / costs.trials


def finished(trials: int) -> list[Entry]:
    """The log of a search of so many trials with about as many finished, and more to come."""
    spec = spec_from(asked(trials + 20_000))
    entries: list[Entry] = []
    closed = 0

    class Enough(Exception):  # noqa: N818 - it ends a loop, nothing is wrong
        pass

    def keep(entry: Entry) -> None:
        nonlocal closed
        entries.append(entry)
        closed += isinstance(entry.event, TrialClosed)
        if closed >= trials:
            raise Enough

    try:
        simulate(spec, SyntheticCurves(spec.space, max_length=1024), on_entry=keep)
    except Enough:
        return entries
    raise RuntimeError("the search ended too soon")


async def events_after(trials: int) -> tuple[float, float, Load]:
    """Microseconds an event, decided and durable, after so many finished trials; what a load costs."""
    message = asked(trials + 20_000)
    entries = finished(trials)
    with tempfile.TemporaryDirectory(prefix="resolute-bench-scale-") as folder:
        database = Database(f"sqlite:///{folder}/searcher.sqlite", name="searcher")
        migrations.upgrade(database.engine, package="resolute_searcher", schema="searcher")
        storage = Storage(database)
        live = LiveSearches(
            storage, clock=SYSTEM_CLOCK, trial_index=TrialIndex(storage), notifier=Notifier(), shared=False
        )
        await live.create(SEARCH, message)
        await _write(storage, entries[1:])
        durable = [await _window(live) for _ in range(_WINDOWS)]
        decided = []
        search, _ = await database.read(lambda c: repository.load_search(c, SEARCH))
        for _ in range(_WINDOWS):
            began = time.process_time()
            count = 0
            while count < _WINDOW:
                change = Change(_Alone(search), now=0.0)  # type: ignore[arg-type]
                count += _step(change)
            decided.append((time.process_time() - began) / count * 1e6)
        load = await _load(storage)
        await storage.close()
    return statistics.median(decided), statistics.median(durable), load


async def _load(storage: Storage) -> Load:
    """Loads a search in the ways there are; the snapshot is made as a worker process makes it."""
    row = await storage.read(lambda c: search_rows.read_search(c, SEARCH))
    code = fingerprint(spec_from(row.spec))
    assert code is not None
    raw = await storage.read(
        lambda c: snapshots.read_stored_entries(c, SEARCH, after=0, limit=row.last_sequence)
    )
    # A server that loads a search does not have this program's copies of its log to look through.
    gc.collect()
    gc.freeze()

    async def loading() -> float:
        began = time.process_time()
        await storage.read(lambda c: repository.load_search(c, SEARCH))
        return time.process_time() - began

    async def keep(new: list[StoredEntry], before: bytes | None) -> tuple[bytes, float]:
        began = time.process_time()
        state = advance_snapshot(row.spec.SerializeToString(), SEARCH, before, new)
        made = time.process_time() - began
        kept = Snapshot(new[-1].sequence, new[-1].tip, code, state)
        await storage.write(lambda c: snapshots.write_snapshot(c, SEARCH, kept))
        return state, made

    whole_log = await loading()
    # The next snapshot is due when the log has grown by a quarter.
    cut = max(len(raw) * 4 // 5, 1)
    old, _ = await keep(raw[:cut], None)
    old_snapshot = await loading()
    state, making = await keep(raw[cut:], old)
    new_snapshot = await loading()
    gc.unfreeze()
    return Load(len(raw), whole_log, new_snapshot, old_snapshot, making, len(state))


@dataclass
class _Alone:
    search: object
    tip: str = ""


async def _write(storage: Storage, entries: list[Entry]) -> None:
    search, tip = await storage.database.read(lambda c: repository.load_search(c, SEARCH))
    batch: list[NewEntry] = []
    for entry in entries:
        search.apply(entry)
        batch.append(NewEntry.of(search, entry, previous=tip, event_id="", now=0.0))
        tip = batch[-1].tip
        if len(batch) == 500 or entry is entries[-1]:
            ready, batch = batch, []
            await storage.write(lambda c, ready=ready: log.append(c, SEARCH, ready))  # type: ignore[misc]


async def _window(live: LiveSearches) -> float:
    done = 0

    async def work() -> None:
        nonlocal done
        while done < _WINDOW:
            count = await live.change(SEARCH, _step)
            done += count

    await live.change(SEARCH, lambda _: None)
    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(16)))
    return (time.process_time() - began) / done * 1e6


def _step(change: Change) -> int:
    """Completes the operation of the newest trial at work, ends it if that was its last; counts events."""
    search = change.search
    for trial_key in reversed(search.state.trials):
        trial = search.state.trials[trial_key]
        if trial.pending:
            change.record(ValidationCompleted(trial_key, _metric(trial_key, trial.length), trial.length))
            if trial.closing:
                change.record(TrialClosed(trial_key))
                return 2
            return 1
    raise RuntimeError("nobody works")


def _metric(trial_key: str, length: int) -> float:
    return int(trial_key[:8], 16) / (1 << 32) + 1.0 / length


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    costs = Costs(options.trials)
    whole(costs)
    for trials in sorted({100, options.trials // 10, options.trials}):
        decided, durable, load = asyncio.run(events_after(trials))
        costs.decided_us[trials], costs.durable_us[trials], costs.loads[trials] = decided, durable, load
    if options.json:
        say(json.dumps(asdict(costs)))
    else:
        for line in costs.lines():
            say(line)
    flat = max(costs.durable_us.values()) <= MOST_GROWTH * min(costs.durable_us.values())
    return 0 if flat and costs.seconds <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
