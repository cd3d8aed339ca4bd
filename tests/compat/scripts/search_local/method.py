"""Halving by hand: some trials, then the better half for longer."""

import json
import random
import uuid

from determined import searcher


class Halving(searcher.SearchMethod):
    def __init__(self, trials):
        super().__init__()
        self.random = random.Random(5)
        self.trials = trials
        self.metrics = {}
        self.closed = 0

    def initial_operations(self, state):
        operations = []
        for _ in range(self.trials):
            create = searcher.Create(
                request_id=uuid.uuid4(), hparams={"lr": self.random.random()}, checkpoint=None
            )
            operations += [create, searcher.ValidateAfter(request_id=create.request_id, length=1)]
        return operations

    def on_trial_created(self, state, request_id):
        return []

    def on_validation_completed(self, state, request_id, metric, train_length):
        if train_length == 2:
            return [searcher.Close(request_id)]
        self.metrics[str(request_id)] = metric
        if len(self.metrics) < self.trials:
            return []
        ranked = sorted(self.metrics, key=self.metrics.get)
        best, rest = ranked[: self.trials // 2], ranked[self.trials // 2 :]
        return [searcher.ValidateAfter(uuid.UUID(name), 2) for name in best] + [
            searcher.Close(uuid.UUID(name)) for name in rest
        ]

    def on_trial_closed(self, state, request_id):
        self.closed += 1
        return [searcher.Shutdown()] if self.closed == self.trials else []

    def on_trial_exited_early(self, state, request_id, exited_reason):
        return [searcher.Shutdown(failure=True)]

    def progress(self, state):
        return self.closed / self.trials

    def save_method_state(self, path):
        path.joinpath("method.json").write_text(json.dumps([self.metrics, self.closed]))

    def load_method_state(self, path):
        self.metrics, self.closed = json.loads(path.joinpath("method.json").read_text())
