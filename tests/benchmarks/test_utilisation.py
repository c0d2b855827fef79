"""How busy workers are: the clock of the benchmark."""

import pytest

import amsbq
from benchmarks import utilisation


def test_workers_are_busy_but_for_decisions(monkeypatch):
    """One worker waits for each decision; for fixed times, its share can be calculated by hand."""
    clock = iter(range(1000))
    monkeypatch.setattr(utilisation.time, "process_time", lambda: float(next(clock)))  # whatever is decided takes 1 s
    monkeypatch.setattr(amsbq, "Integrator", lambda *_, **more: Once(more["budget"]))
    monkeypatch.setattr(utilisation, "value", lambda source, x: 0.0)
    monkeypatch.setattr(utilisation, "SPREAD", 0.0)
    share, decision, asked = utilisation.run(workers=1, seconds=4.0, budget=3.0)
    # an evaluation takes 4 s; before it there is 1 s to ask, after it 1 s to tell, and at the end 1 s to ask in vain
    assert (share, decision, asked) == (pytest.approx(12 / 19), pytest.approx(7 / 3), 3)
    share, _, asked = utilisation.run(workers=3, seconds=4.0, budget=3.0)
    # three are asked for in 3 s, and end 5, 6 and 7 s after the start: one is told at 6 s, and the last ask ends at 7 s
    assert (share, asked) == (pytest.approx(12 / 21), 3)


class Once:
    """Asks for as many evaluations as the budget pays for."""

    def __init__(self, budget):
        self.left = int(budget)

    def ask(self):
        self.left -= 1
        return amsbq.Query(self.left, 0, (0.0, 0.0), 1.0) if self.left >= 0 else None

    def tell(self, query, value):
        pass
