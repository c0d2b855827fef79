"""`Generator`: an `Integrator` for engines that follow gest-api, such as libEnsemble, optimas and Xopt.

A point is a dictionary: the inputs by name, the constants of the VOCS, and the name of the source if there are
several. A result is a point together with the outputs of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .common.validation import Array, brief
from .design.evaluations import Query
from .design.observations import Observation
from .design.sources import Source, SourcesLike
from .execution.integrator import Integrator
from .measures.uniform import Uniform

try:
    from gest_api import Generator as Standard
    from gest_api.vocs import VOCS, ContinuousVariable, DiscreteVariable
except ImportError:
    raise ImportError("generators for other engines need gest-api: pip install 'amsbq[gest]'") from None

#: reserved names of observables: the variance of the noise on the value, and the cost of the evaluation
VARIANCE, COST = "variance", "cost"


class Generator(Standard):  # type: ignore[misc]
    """A generator for engines that follow gest-api: they evaluate the queries of an `Integrator`.

    Parameters
    ----------
    vocs : gest_api.vocs.VOCS
        Its variables are the inputs; with several sources, a further, discrete variable selects the source by name or
        number (optimas passes only numbers). Its objectives are the outputs to be integrated. The observables
        "variance" (for several outputs "peak_variance") and "cost" give the noise variance of a value and the cost of
        an evaluation. Constants are passed on. Constraints are not supported.
    inputs : optional
        The distribution of the inputs, as for `Integrator`, in the order of the variables or by their names; the
        domains of the variables must contain its support. By default it is uniform on the domains.
    sources : list of Source, optional
        Sources without functions, the primary one first; a source that costs nothing has a function and is not a value
        of the variable. By default there is one source.
    source : str
        The name of the variable that selects the source.
    **options
        Options of `Integrator`, such as ``budget``, ``seed``, ``target``, ``output_range``, ``units``.

    Attributes
    ----------
    integrator : Integrator
        The run, with ``estimate()`` and ``result()``.

    Raises
    ------
    ValueError
        If the VOCS does not describe such a problem.

    Examples
    --------
    >>> from gest_api.vocs import VOCS
    >>> import amsbq
    >>> vocs = VOCS(
    ...     variables={"speed": [30, 50], "angle": [0.5, 1.0], "source": {"fine", "coarse"}},
    ...     objectives={"range": "EXPLORE"},
    ... )
    >>> sources = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]
    >>> generator = amsbq.gest.Generator(vocs, sources=sources, seed=0)
    >>> points = generator.suggest(2)
    >>> sorted(points[0])
    ['_id', 'angle', 'source', 'speed']
    >>> generator.ingest([{**point, "range": point["speed"] ** 2 * point["angle"] / 10} for point in points])
    >>> len(generator.integrator.evaluations)
    2
    """

    returns_id = True

    def __init__(
        self,
        vocs: VOCS,
        inputs: Any = None,
        sources: SourcesLike | None = None,
        *,
        source: str = "source",
        **options: Any,
    ) -> None:
        self.vocs, self._variable = vocs, source
        self._inputs = [name for name in vocs.variable_names if name != source]
        super().__init__(vocs)
        outputs = vocs.objective_names
        if inputs is None:
            inputs = Uniform(*np.transpose(self._domains()))
        elif isinstance(inputs, Mapping):
            inputs = {name: inputs[name] for name in self._inputs} if set(inputs) == set(self._inputs) else inputs
        if len(outputs) == 1:  # an `Integrator` has no name for the only output, but a label
            options["labels"] = {"output": outputs[0], **_renamed(options.get("labels"), outputs[0])}
            options["units"] = _renamed(options.get("units"), outputs[0])
        self.integrator = Integrator(
            Source(name="simulator") if sources is None else sources,
            inputs,
            names=None if isinstance(inputs, Mapping) else self._inputs,
            outputs=outputs if len(outputs) > 1 else None,
            **options,
        )
        self._waiting: list[Query] = []
        self._called: dict[int, str | int] = {}  # the value of the variable for each source, if there is a variable
        self._check()

    def _validate_vocs(self, vocs: VOCS) -> None:
        """Raise an error if the generator cannot handle the problem, before inputs and sources are checked."""
        if vocs.constraints:
            raise ValueError(f"an integral has no constraints: leave out {', '.join(vocs.constraint_names)}")
        if not vocs.objectives:
            raise ValueError('there is no output to integrate: name it among the objectives, as in {"f": "EXPLORE"}')
        if not self._inputs:
            raise ValueError(f"there are no inputs: the only variable is {self._variable!r}, the source")
        for name in self._inputs:
            if np.shape(getattr(vocs.variables[name], "domain", (0, 0))) != (2,):
                raise ValueError(f"variable {name!r} must be one number, not an array")

    def _domains(self) -> Array:
        """Return the domains of the inputs, (D, 2): their default distribution is uniform on these."""
        for name in self._inputs:
            variable = self.vocs.variables[name]
            if not isinstance(variable, ContinuousVariable) or not np.all(np.isfinite(variable.domain)):
                raise ValueError(f"pass the distribution of {name!r} as inputs=: its domain does not define one")
        return np.array([self.vocs.variables[name].domain for name in self._inputs], dtype=float)

    def _check(self) -> None:
        """Raise an error if inputs and sources do not match the VOCS."""
        it = self.integrator
        named = list(it.inputs or ())
        if named != self._inputs:
            raise ValueError(f"the inputs are {', '.join(named)}, but the variables are {', '.join(self._inputs)}")
        for name, support in zip(self._inputs, it.measure.bounds, strict=True):
            variable = self.vocs.variables[name]
            ends = variable.domain if isinstance(variable, ContinuousVariable) else (-math.inf, math.inf)
            if support[0] < ends[0] or support[1] > ends[1]:
                raise ValueError(
                    f"{name!r} is distributed on {support[0]:g} to {support[1]:g}, beyond its domain "
                    f"{brief(list(ends))}: the integral is over all of it; widen the domain, with infinities if need be"
                )
        evaluated = [number for number, each in enumerate(it.sources) if each.function is None]
        given = self.vocs.variables.get(self._variable)
        if given is None and len(evaluated) == 1:
            return
        values = set(given.values) if isinstance(given, DiscreteVariable) else set()
        by_name = {it.names[number] for number in evaluated}
        if values not in (by_name, set(evaluated)):
            raise ValueError(
                f"variable {self._variable!r} must have the names of the sources without functions as values, "
                f"{{{', '.join(map(repr, sorted(by_name)))}}}, or their numbers, {set(evaluated)}, got {brief(given)}"
            )
        self._called = {number: it.names[number] if values == by_name else number for number in evaluated}

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return the points to evaluate next, chosen jointly and conditioned on the pending ones.

        Parameters
        ----------
        num_points : int, optional
            Number of points; by default one.

        Returns
        -------
        list of dict
            The points, with their numbers as "_id".

        Raises
        ------
        ValueError
            If there are fewer, because the budget is used up or nothing left is worth its cost.
        """
        wanted = 1 if num_points is None else num_points
        if missing := wanted - len(self._waiting):
            self._waiting += self.integrator.ask(missing) if missing > 0 else []
        if len(self._waiting) < wanted:
            reason = self.integrator.stopped or "results of pending points are needed first"
            raise ValueError(f"only {len(self._waiting)} of {wanted} points are left to evaluate: {reason}")
        given, self._waiting = self._waiting[:wanted], self._waiting[wanted:]
        return [self._point(query) for query in given]

    def _point(self, query: Query) -> dict[str, Any]:
        x = dict(zip(self._inputs, map(float, query.x), strict=True))
        constants = {name: constant.value for name, constant in self.vocs.constants.items()}
        named = {self._variable: self._called[query.source]} if self._called else {}
        return {name: {**x, **named}[name] for name in self.vocs.variable_names} | constants | {"_id": query.id}

    def ingest(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Learn from evaluations: those of suggested points, identified by "_id", and any others, without "_id".

        If the objective is NaN, None or missing, the evaluation has failed; with several outputs, those with a
        number are used.

        Raises
        ------
        ValueError
            If an "_id" does not belong to a pending point.
        """
        pending = {query.id: query for query in self.integrator.pending}
        numbers = [_number(result.get("_id")) for result in results]
        for given in numbers:
            if not math.isnan(given) and given not in pending:
                raise ValueError(f"no pending point has the _id {given:g}")
        for given, result in zip(numbers, results, strict=True):
            seen = self._observation(result)
            failed = bool(np.all(np.isnan(np.asarray(seen.value, dtype=float))))
            if not math.isnan(given):
                query = pending[int(given)]
                if failed:
                    self.integrator.fail(query, "the simulator returned no number", cost=seen.cost)
                else:
                    self.integrator.tell(query, seen)
            elif not failed:
                x = [float(result[name]) for name in self._inputs]
                self.integrator.observe(self._source(result), x, seen.value, seen.variance)

    def _source(self, result: Mapping[str, Any]) -> int:
        """Return the index of the source that was evaluated."""
        if not self._called:
            return next(n for n, each in enumerate(self.integrator.sources) if each.function is None)
        found = [number for number, called in self._called.items() if called == result[self._variable]]
        if not found:
            names = ", ".join(map(str, self._called.values()))
            raise ValueError(f"there is no source {result[self._variable]!r}; valid names: {names}")
        return found[0]

    def _observation(self, result: Mapping[str, Any]) -> Observation:
        names = self.vocs.objective_names
        prefixes = [""] if len(names) == 1 else [f"{name}_" for name in names]
        values = [_number(result.get(name)) for name in names]
        noise = [_number(result.get(f"{prefix}{VARIANCE}", 0.0)) for prefix in prefixes]
        measured = _number(result.get(COST))
        cost = None if math.isnan(measured) else measured
        return Observation(values[0], noise[0], cost) if len(names) == 1 else Observation(values, noise, cost)


def _renamed(texts: Mapping[str, str] | None, output: str) -> dict[str, str]:
    """Return units or labels by name, with the name of the only output replaced by "output"."""
    return {"output" if name == output else name: text for name, text in (texts or {}).items()}


def _number(given: Any) -> float:
    """Return a number, NaN if it is missing: some engines omit unknown entries, others pass None or NaN."""
    return math.nan if given is None else float(given)
