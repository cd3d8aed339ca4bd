"""A training script whose data loader forks workers while calls to the services are under way."""

import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from torch.utils.data import DataLoader, Dataset

from resolute import core
from resolute.errors import ForkedProcessError

warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
EPOCHS, RAW_FORKS = int(sys.argv[1]), int(sys.argv[2])


class Samples(Dataset[int]):
    """Each sample says which calls its worker was refused."""

    def __init__(self, context: core.Context, op: core.SearcherOperation) -> None:
        self.context, self.op = context, op

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        calls: list[Callable[[], Any]] = [
            lambda: self.context.train.report_training_metrics(1, {"loss": 1.0}),
            self.context.train.get_experiment_best_validation,
            lambda: self.context.train.set_status("worker"),
            lambda: self.op.report_progress(1),
            lambda: self.context.checkpoint.upload("/tmp", {"steps_completed": 1}),
            self.context.train.flush,
        ]
        refused = 0
        for call in calls if index == 0 else ():
            try:
                call()
            except ForkedProcessError:
                refused += 1
        return refused


def ask_all_the_time(context: core.Context, stop: threading.Event) -> None:
    while not stop.is_set():
        context.train._record.best_validation()


def end(code: int, *, unwind: bool) -> NoReturn:
    """Ends a child: at once, as multiprocessing does, or by unwinding what its parent opened."""
    if unwind:
        sys.exit(code)
    os._exit(code)


def fork_and_end(context: core.Context, *, unwind: bool) -> int | str:
    """A bare fork whose child collects its parent's garbage and ends."""
    child = os.fork()
    if child == 0:
        try:
            context.train.report_training_metrics(1, {"loss": 1.0})
        except ForkedProcessError:
            gc.collect()
            end(0, unwind=unwind)
        end(1, unwind=unwind)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


with core.init() as context:
    op = next(context.searcher.operations())
    stop = threading.Event()
    asking = threading.Thread(target=ask_all_the_time, args=(context, stop))
    asking.start()
    steps, refused = 0, 0
    for _ in range(EPOCHS):
        for batch in DataLoader(Samples(context, op), batch_size=2, num_workers=2, timeout=30):
            steps += 1
            refused += int(batch.sum())
            context.train.report_training_metrics(steps, {"loss": 1.0})
    exits = [fork_and_end(context, unwind=i % 20 == 0) for i in range(RAW_FORKS)]
    stop.set()
    asking.join()
    context.train.flush(timeout=30)
    with context.checkpoint.store_path({"steps_completed": steps}):
        pass
    op.report_completed(1.0)
    assert refused == 6 * EPOCHS, refused
    assert set(exits) <= {0}, exits
print("done", steps)
