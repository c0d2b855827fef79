"""Evaluations that failed: where not to ask again at once, and which sources to give up."""

from __future__ import annotations

from ..validation import Array

PATIENCE = 5  #: failures in a row after which a source is retired


AVOIDED = 4  #: evaluations for which a first failure is avoided; each further one of a source doubles it


class Failures:
    """The failures of each source.

    A failure by chance is soon forgotten. Where a simulator fails always it will fail again, and each time it takes
    twice as long until that is tried: no more than a few evaluations are lost to it.
    """

    def __init__(self, n_sources: int) -> None:
        self.retired: set[int] = set()
        self._in_a_row, self._total = [0] * n_sources, [0] * n_sources
        self._places: list[tuple[int, Array, int]] = []  # source, x, and the number of evaluations until which

    def failed(self, source: int, x: Array, evaluations: int) -> bool:
        """One more, after so many evaluations of any source; whether it was one too many."""
        self._places.append((source, x, evaluations + AVOIDED * 2 ** self._total[source]))
        self._total[source] += 1
        self._in_a_row[source] += 1
        if self._in_a_row[source] < PATIENCE or source in self.retired:
            return False
        self.retired.add(source)
        return True

    def succeeded(self, source: int) -> None:
        """An evaluation that did not fail."""
        self._in_a_row[source] = 0

    def avoided(self, evaluations: int) -> list[tuple[int, Array]]:
        """Sources and places that are not to be asked after so many evaluations."""
        return [(source, x) for source, x, until in self._places if until > evaluations]
