"""Events become a state in one way."""

import math

import pytest

from amsbq.execution.journal import Journal, JournalError
from amsbq.execution.state import RunState, read_state

SOURCE = {"name": "fine", "cost": 1.0, "noise": 0.0, "valid": None}
HEADER = {"event": "begun", "format": 2, "budget": 5.0, "problem": {"sources": [SOURCE]}}
ASKED = [{"event": "asked", "id": i, "source": 0, "x": [0.1 * i], "cost": 1.0, "rate": math.nan} for i in range(3)]
TOLD = [{"event": "told", "id": i, "value": 2.0 + i, "variance": 0.5, "cost": 0.9} for i in range(3)]
FAILED = {"event": "failed", "id": 1, "reason": "diverged", "cost": 0.3}
KNOWN = [{"event": "known", "id": i, "mean": 1.0 + i, "std": 0.25} for i in range(3)]
FITTED = [{"event": "fitted", "n": n, "hyperparameters": {}, "warnings": []} for n in (1, 2)]
STOPPED = {"event": "stopped", "reason": "budget", "spent": 1.8, "budget": 5.0}


def test_a_run_in_progress():
    state = RunState.from_events(HEADER, [*ASKED, TOLD[2], FITTED[0], KNOWN[2], FAILED, KNOWN[1]])
    assert [query.id for query in state.queries] == [0, 1, 2]
    assert [query.id for query in state.pending] == [0]
    second, failed = state.evaluations  # in the order in which they were reported
    assert (second.id, second.value, second.variance, second.cost, second.status) == (2, 4.0, 0.5, 0.9, "ok")
    assert (second.mean, second.std) == (3.0, 0.25)
    assert (failed.id, failed.reason, failed.cost, failed.status) == (1, "diverged", 0.3, "failed")
    assert (state.budget, state.stopped, state.estimate, state.unknown) == (5.0, "", None, 0)
    assert state.fitted == FITTED[0]
    assert state.names == ["fine"]


def test_the_latest_of_what_was_said_counts():
    resumed = {"event": "resumed", "budget": 9.0}
    events = [ASKED[0], TOLD[0], FITTED[0], KNOWN[0], STOPPED, resumed, ASKED[1], TOLD[1], FITTED[1]]
    state = RunState.from_events(HEADER, events)
    assert (state.budget, state.stopped, state.fitted) == (9.0, "", FITTED[1])
    assert state.unknown == 1  # what the last value has told was not written
    assert math.isnan(state.evaluations[-1].std)
    assert RunState.from_events(HEADER, events[:5]).stopped == "budget"


@pytest.mark.parametrize("events", [[TOLD[0]], [ASKED[0], TOLD[0], TOLD[0]], [ASKED[1], TOLD[1], FAILED]])
def test_answers_that_nobody_waited_for_are_refused(tmp_path, events):
    path = tmp_path / "run.jsonl"
    with Journal(path) as journal:
        for event in [HEADER, *events]:
            journal.write(event)
    with pytest.raises(JournalError, match=r"run.jsonl records something that cannot have happened: a query was"):
        read_state(path)
