"""The tables of states, row by row as the page tells them; all else is refused."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import fields
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from resolute.errors import IllegalTransitionError
from resolute_experiments.exits.policy import OUTCOME_RULES, TRIAL_RULES
from resolute_experiments.settings import ExperimentsSettings
from resolute_experiments.states import ALLOCATIONS, EXPERIMENTS, RUNS, TRIALS, Row, Table

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "lifecycle.md").read_text()
CODE = ROOT / "services" / "experiments" / "resolute_experiments"
TABLES: dict[str, Table[Any, Any, Any]] = {
    "Experiments": EXPERIMENTS,
    "Trials": TRIALS,
    "Runs": RUNS,
    "Allocations": ALLOCATIONS,
}
SIZES = {"Experiments": (12, 18), "Trials": (9, 29), "Runs": (7, 12), "Allocations": (6, 4)}


def tables(section: str) -> list[list[list[str]]]:
    """The cells of each table in a section of the page, without its head."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = [block for block in text.split("\n\n") if block.lstrip().startswith("|")]
    return [
        [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in rows[2:]]
        for rows in (block.strip().splitlines() for block in blocks)
    ]


def rows_of_page(section: str) -> list[tuple[str, str, str, str]]:
    """Every row of the page, once for each state: event, state, next state, effects."""
    (rows,) = tables(section)
    return [
        (event, state, state if after == "the same" else after, effects)
        for event, states, after, effects in rows
        for state in states.split(", ")
    ]


def kinds(section: str) -> tuple[type[Enum], type[Enum]]:
    """The states and the events of a table."""
    state, event = next(iter(TABLES[section].steps))
    return type(state), type(event)


@pytest.mark.parametrize("section", TABLES)
def test_events_lead_where_the_page_says_and_do_what_it_says(section: str) -> None:
    steps = {
        (event.name, state.name, step.after.name, "; ".join(effect.value for effect in step.effects) or "-")
        for (state, event), step in TABLES[section].steps.items()
    }
    page = rows_of_page(section)
    assert len(page) == len(set(page))
    assert steps == set(page)


@pytest.mark.parametrize("section", TABLES)
def test_every_other_event_is_refused(section: str) -> None:
    states, events = kinds(section)
    assert (len(states), len(events)) == SIZES[section]
    refused = [pair for pair in product(states, events) if pair not in TABLES[section].steps]
    assert refused
    for state, event in refused:
        with pytest.raises(IllegalTransitionError) as caught:
            TABLES[section].step(state, event, resource="object 7")
        assert "object 7" in str(caught.value)
        assert (caught.value.from_state, caught.value.to_state) == (state.value, event.value)


def test_the_page_has_the_rules_of_the_end_of_a_run_in_their_order() -> None:
    endings, rules = tables("What the end of a run means")
    assert endings == [[one.when, one.event.name] for one in OUTCOME_RULES]
    assert rules == [
        [rule.when, rule.run.name if rule.run else "any", rule.event.name] for rule in TRIAL_RULES
    ]


def test_every_rule_of_the_page_has_its_number_and_its_tests() -> None:
    (rules,) = tables("What scripts and people may rely on")
    assert [number for number, _, _ in rules] == [str(n) for n in range(1, len(rules) + 1)]
    files = (ROOT / "tests").rglob("test_*.py")
    there = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    for number, _, named in rules:
        tests = [name.strip("`") for name in named.split(", ")]
        assert there.issuperset(tests), (number, set(tests) - there)


def test_a_signal_s_deadline_is_an_hour_away_unless_somebody_said_otherwise() -> None:
    defaults = {field.name: field.default for field in fields(ExperimentsSettings)}
    assert defaults["preemption_timeout"] == 3600.0


def test_two_rows_about_the_same_are_a_defect() -> None:
    first = TRIALS.rows[0]
    with pytest.raises(ValueError, match="two rows"):
        Table([first, Row(event=first.event, before=first.before)])


def test_what_is_refused_says_what_to_do_instead() -> None:
    states, events = kinds("Experiments")
    with pytest.raises(IllegalTransitionError, match="only an ACTIVE experiment can be paused"):
        EXPERIMENTS.step(states["ERROR"], events["PAUSE"], resource="experiment 1")  # type: ignore[arg-type]


def writers(*columns: str) -> dict[str, set[str]]:
    """Modules that write some columns by ``update``, by column."""
    modules = defaultdict(set)
    named = re.compile(rf"\b(?:{'|'.join(columns)})=")
    for path in CODE.rglob("*.py"):
        text = path.read_text()
        # Most modules update none of these, and need not be parsed.
        for node in ast.walk(ast.parse(text)) if ".update(" in text and named.search(text) else ():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "update"
            ):
                for keyword in node.keywords:
                    modules[str(keyword.arg)].add(str(path.relative_to(CODE)))
    return modules


def test_no_state_is_written_past_the_tables() -> None:
    modules = writers("state", "outcome", "preempt", "kill", "acknowledged")
    assert modules["state"] == {"transitions/experiment.py", "transitions/trial.py"}
    assert modules["outcome"] == {"unmanaged/tracking.py"}
    assert modules["preempt"] | modules["kill"] | modules["acknowledged"] == set()
