"""Models that choose hyperparameters: equal questions, equal answers; searches that wait for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.services.searcher import spec

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.contracts.values import to_value
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import Started, Suggested, TrialClosed, ValidationCompleted
from resolute_searcher.planning.curves import SyntheticCurves
from resolute_searcher.runtime.optuna_sampler import available, suggest
from resolute_searcher.state_machine.replay import replay
from resolute_searcher.state_machine.search import Search
from resolute_searcher.wire.external_methods import SAMPLERS
from resolute_searcher.wire.spec import spec_from

SPACE = spec_pb.Space(
    hyperparameters={
        "lr": spec_pb.Hyperparameter(log_range=spec_pb.LogRange(minval=-4, maxval=-1, base=10)),
        "width": spec_pb.Hyperparameter(int_range=spec_pb.IntRange(minval=4, maxval=64)),
        "fixed": spec_pb.Hyperparameter(const_value=to_value([1, {"a": None}])),
        "nested": spec_pb.Hyperparameter(
            nested=spec_pb.Space(
                hyperparameters={
                    "drop": spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0, maxval=0.5)),
                    "act": spec_pb.Hyperparameter(
                        categorical=spec_pb.Categorical(
                            vals=[to_value("relu"), to_value(None), to_value({"x": 1})]
                        )
                    ),
                }
            )
        ),
    }
)


def asked(sampler: str, **settings: object) -> spec_pb.SearchSpec:
    given = {"max_length": 16, "max_trials": 14, "max_concurrent_trials": 4, "sampler": sampler, **settings}
    return spec(external=spec_pb.ExternalMethod(name="optuna", settings=to_value(given)), space=SPACE)


def play(message: spec_pb.SearchSpec) -> list[Entry]:
    parsed = spec_from(message)
    search = Search(parsed)
    entries: list[Entry] = []

    def feed(event: object) -> None:
        entry = search.record(event)  # type: ignore[arg-type]
        assert entry is not None
        entries.append(entry)

    feed(Started())
    while not search.state.over:
        pending = [one for one, trial in search.state.trials.items() if trial.pending]
        if search.state.awaits_suggestion:
            question = search.state.suggestion_request()
            assert question is not None
            answer = suggest(message.SerializeToString(), question)
            assert answer.failure == ""
            feed(answer)
            continue
        trial_key = pending[0]
        trial = search.state.trial(trial_key)
        feed(ValidationCompleted(trial_key, 0.1 * (len(entries) % 7), trial.length))
        if trial.closing:
            feed(TrialClosed(trial_key))
    assert replay(parsed, entries).equal
    return entries


def chosen(entries: list[Entry]) -> list[object]:
    return [entry.event.hparams for entry in entries if isinstance(entry.event, Suggested)]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_plays_a_search(sampler: str) -> None:
    assert not available(sampler)
    entries = play(asked(sampler, max_trials=8 if sampler == "gp" else 14, num_rungs=2))
    samples = chosen(entries)
    assert len({repr(sample) for sample in samples}) == len(samples)
    for sample in samples:
        assert isinstance(sample, dict)
        assert sample["fixed"] == [1, {"a": None}]
        assert 1e-4 <= sample["lr"] <= 1e-1
        assert sample["nested"]["act"] in ("relu", None, {"x": 1})
    if sampler != "gp":
        assert chosen(play(asked(sampler, num_rungs=2))) == samples


def test_an_answer_rests_on_its_question_alone() -> None:
    message = asked("tpe", settings={"n_startup_trials": 2})
    search = Search(spec_from(message))
    search.record(Started())
    first = search.state.suggestion_request()
    assert first is not None
    answers = [suggest(message.SerializeToString(), first) for _ in range(2)]
    assert answers[0] == answers[1]
    search.record(answers[0])
    (trial_key,) = search.state.trials
    second = search.state.suggestion_request()
    search.record(ValidationCompleted(trial_key, 0.5, 16))
    # What came after the question was asked does not change it.
    assert search.state.suggestion_request() == second
    assert second is not None
    assert suggest(message.SerializeToString(), second) != replace(answers[0], number=2)


def test_a_model_that_fails_leaves_the_choice_to_chance() -> None:
    message = asked("tpe", settings={"no_such_setting": 1})
    search = Search(spec_from(message))
    search.record(Started())
    question = search.state.suggestion_request()
    assert question is not None
    answer = suggest(message.SerializeToString(), question)
    assert "no_such_setting" in answer.failure
    entry = search.record(answer)
    assert entry is not None
    assert len(entry.actions) == 1
    assert search.record(answer) is None


def test_a_model_learns() -> None:
    def best(sampler: str) -> float:
        message = asked(sampler, max_trials=60, max_concurrent_trials=4)
        parsed = spec_from(message)
        curves = SyntheticCurves(parsed.space, max_length=16)
        search = Search(parsed)
        search.record(Started())
        found = []
        while not search.state.over:
            question = search.state.suggestion_request()
            if question is not None:
                search.record(suggest(message.SerializeToString(), question))
                continue
            trial_key = next(one for one, trial in search.state.trials.items() if trial.pending)
            number = list(search.state.trials).index(trial_key)
            hparams = samples(search)[number]
            metric = curves.metric(number, hparams, 16)
            found.append(metric)
            search.record(ValidationCompleted(trial_key, metric, 16))
            search.record(TrialClosed(trial_key))
        return min(found)

    def samples(search: Search) -> list[dict[str, object]]:
        return [one[0] for one in search.state.snapshot()["method"]["suggestions"]]

    assert best("tpe") < best("random") + 0.05
