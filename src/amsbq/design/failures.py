"""Failed evaluations: where not to ask again at once, and which sources to retire."""

from __future__ import annotations

from ..validation import Array

#: failures in a row that retire a source: five in a row have a probability of 0.4 % if a third of them fails
RETIRED_AFTER = 5

#: evaluations for which the location of a source's first failure is avoided; each further failure doubles it, so that a
#: region where a simulator always fails costs only a logarithmic number of evaluations
AVOIDED_FOR = 4


class Failures:
    """The failures of each source.

    A failure by chance is soon forgotten. Where a simulator always fails it will fail again, and each time it takes
    twice as long until that location is tried again.

    Attributes
    ----------
    retired : set of int
        The sources that are not asked any more.
    """

    def __init__(self, n_sources: int) -> None:
        self.retired: set[int] = set()
        self._in_a_row, self._total = [0] * n_sources, [0] * n_sources
        self._avoided: list[tuple[int, Array, int]] = []  # source, x, and the number of evaluations until which

    def failed(self, source: int, x: Array, evaluations: int) -> bool:
        """Record a failure at x (D,) after that many evaluations of any source; return whether it retires the source.

        A source that is retired already is not retired again.
        """
        self._avoided.append((source, x, evaluations + AVOIDED_FOR * 2 ** self._total[source]))
        self._total[source] += 1
        self._in_a_row[source] += 1
        if self._in_a_row[source] < RETIRED_AFTER or source in self.retired:
            return False
        self.retired.add(source)
        return True

    def succeeded(self, source: int) -> None:
        """Record an evaluation that did not fail."""
        self._in_a_row[source] = 0

    def avoided(self, evaluations: int) -> list[tuple[int, Array]]:
        """Return the sources and locations (source, x) to be avoided after that many evaluations of any source."""
        return [(source, x) for source, x, until in self._avoided if until > evaluations]
