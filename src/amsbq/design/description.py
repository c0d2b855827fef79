"""`Problem`: everything on which the values and choices of a run depend, checked once. Journals store it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, RNGLike, brief, non_negative_number, positive_number, read_only, seed_number
from ..common.validation import source_number as number_of_source
from ..gp.posterior import MultiSourceGP, gp_from_dict
from ..inference.structures import Model, ModelName, as_model, checked_order
from ..measures.adapters import NamedMeasureLike, measure_from_dict, named_measure
from ..measures.base import Measure
from ..posterior.outputs import OutputsLike, by_output, output_names
from ..posterior.targets import Target, checked_targets, targets_from_json, targets_to_json
from ..posterior.transforms import OutputRange, checked_ranges, range_arguments
from .acquisition import AcquisitionName, checked_kind
from .evaluations import Choice
from .fidelities import LIMIT, fidelities_of, with_limit
from .goals import Goals, Tolerance, Weights
from .labels import Labels
from .sources import Source, SourcesLike, as_sources, source_names

#: (low, high), or a dictionary of them by output
RangeLike: TypeAlias = tuple[float, float] | Mapping[str, tuple[float, float]]
#: the evaluations to begin with
Initial: TypeAlias = Sequence[tuple[int | str, ArrayLike]]


def input_names(dim: int) -> list[str]:
    """Return default names of inputs: x0, x1, ..."""
    return [f"x{d}" for d in range(dim)]


@dataclass(frozen=True)
class Problem:
    """The description of a run.

    Attributes
    ----------
    sources : tuple of Source
        The primary source first.
    names : list of str
        A different name for each source.
    measure : Measure
        The distribution of the inputs.
    inputs : list of str or None
        Names of the inputs, if they have any.
    outputs : tuple of str or None
        Names of the outputs, if there are several.
    budget : float
        In units of cost; infinite if there is no limit.
    model : Model
        The model of the sources.
    acquisition : str
        The kind of utility.
    seed : int
        Seed of all randomness.
    initial : list of Choice or None
        The user's initial design; None for the default one.
    order : list of int or None
        The sources in order of fidelity, if the user gave it.
    targets : list of str, Exceedance or Quantile
        For each output, the quantity that evaluations are chosen to learn.
    ranges : list of OutputRange or None
        For each output, the range of the values of all sources, if known.
    goals : Goals
        The accuracy that each output is to reach, and its weight.
    decision_cost : float
        The cost of a second of deciding.
    limit : bool
        Whether the target is the integral of the limit to which sources tend as they are refined.
    labels : Labels
        The title of the run, and the names and units of inputs, outputs and costs; no number depends on them.
    """

    sources: tuple[Source, ...]
    names: list[str]
    measure: Measure
    inputs: list[str] | None
    outputs: tuple[str, ...] | None
    budget: float
    model: Model
    acquisition: str
    seed: int
    initial: list[Choice] | None
    order: list[int] | None
    targets: list[Target]
    ranges: list[OutputRange | None]
    goals: Goals
    decision_cost: float
    limit: bool = False
    labels: Labels = field(default_factory=Labels)

    @classmethod
    def of(
        cls,
        sources: SourcesLike,
        measure: NamedMeasureLike,
        *,
        budget: float | None = None,
        model: ModelName | MultiSourceGP = "auto",
        acquisition: AcquisitionName = "mi",
        seed: RNGLike = None,
        initial: Initial | None = None,
        order: Sequence[int] | None = None,
        rng: RNGLike = None,
        names: Sequence[str] | None = None,
        target: Target | Mapping[str, Target] = "mean",
        outputs: OutputsLike | None = None,
        weights: Weights | None = None,
        output_range: RangeLike | None = None,
        log: bool | Mapping[str, bool] = False,
        decision_cost: float = 0.0,
        limit: bool = False,
        rel_tol: Tolerance | None = None,
        abs_tol: Tolerance | None = None,
        error_cost: Tolerance | None = None,
        title: str | None = None,
        units: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Self:
        """Check the arguments of `amsbq.integrate` and return the description of the run."""
        distribution, inputs = named_measure(measure, names)
        several = None if outputs is None else output_names(outputs)
        given = as_sources(sources)
        called, ranges = source_names(given), checked_ranges(output_range, log, several)
        fidelities = fidelities_of([source.fidelity for source in given], called, inputs)
        if not isinstance(limit, bool):
            raise TypeError(f"limit must be True or False, got {brief(limit)}")
        if limit:
            fidelities = with_limit(fidelities, model)
        if distribution.function is None:
            known, categories = inputs or input_names(distribution.dim), distribution.categories
            listed = [source.of_inputs(known, categories, name) for source, name in zip(given, called, strict=True)]
        elif any(source.inputs is not None for source in given):
            raise ValueError(
                "inputs= of a source names inputs of the run, but here sources get what a function returns"
            )
        else:
            listed = [source.after(distribution.function) for source in given]
        whole = [source.of_outputs(several, name) for source, name in zip(listed, called, strict=True)]
        if several is not None and whole[0].outputs != several:
            raise ValueError(f"{called[0]} is the primary source: it must have all outputs, {brief(several)}")
        made = cls(
            sources=tuple(source.within(ranges, several) for source in whole),
            names=called,
            measure=distribution,
            inputs=inputs,
            outputs=several,
            budget=math.inf if budget is None else positive_number(budget, "budget"),
            model=replace(as_model(model), fidelities=fidelities),
            acquisition=checked_kind(acquisition),
            seed=seed_number(seed, rng),
            initial=None,
            order=None if order is None else checked_order(order, len(whole)),
            targets=checked_targets(target, several),
            ranges=ranges,
            goals=Goals.of(rel_tol, abs_tol, weights, error_cost, several),
            decision_cost=non_negative_number(decision_cost, "decision_cost"),
            limit=limit,
            labels=Labels.of(title, units, labels, inputs or input_names(distribution.dim), several),
        )
        made.model.check_for(len(whole), distribution)
        return made if initial is None else replace(made, initial=made._checked_initial(initial))

    @property
    def usable(self) -> range:
        """The indices of the sources that the model can use."""
        return range(len(self.sources) if self.model.secondaries else 1)

    @property
    def known_order(self) -> list[int] | None:
        """The sources in order of fidelity, as given by the user or by their fidelities; None if unknown."""
        fidelities = self.model.fidelities
        return self.order or (None if fidelities is None else fidelities.order)

    def modelled_order(self, order: list[int] | None) -> list[int] | None:
        """Return sources in order of fidelity, with the limit as one more if the run is about it; None stays None."""
        return [*order, len(self.sources)] if order is not None and self.limit else order

    @property
    def modelled(self) -> list[str]:
        """The names of the sources of the model: those of the run, and the limit if the run is about it."""
        return [*self.names, LIMIT] if self.limit else self.names

    @property
    def noise(self) -> list[list[Any]]:
        """The noise of each source of the model, by output: a variance, or "learn"."""
        given = [by_output(source.noise, self.outputs or ("",)) for source in self.sources]
        given += [[0.0] * len(given[0])] if self.limit else []
        return [[level or 0.0 for level in of_output] for of_output in zip(*given, strict=True)]

    @property
    def logarithms(self) -> list[bool]:
        """Whether the values of each output are logarithms."""
        return [known is not None and known.log for known in self.ranges]

    def with_gradient(self, source: int) -> bool:
        """Return whether a source has a gradient."""
        return self.sources[source].gradient is not None

    def source_number(self, source: Any, name: str = "source") -> int:
        """Return the index of a source if the model can use it, or raise an error."""
        found = number_of_source(source, len(self.sources), name, self.names)
        if found not in self.usable:
            raise ValueError(f"{name} is {found}, but the model uses source 0 only")
        return found

    def predicted_number(self, source: Any) -> int:
        """Return the index of a source that the model predicts, which may also be "limit"."""
        if self.limit and source == LIMIT and LIMIT not in self.names:
            return len(self.sources)
        return self.source_number(source)

    def location(self, x: ArrayLike, name: str = "x") -> Array:
        """Return one location as a read-only array of shape (D,), or raise an error if it is not in the support."""
        row = np.reshape(np.asarray(x), (1, -1))
        if row.shape[1] != self.measure.dim:
            one = self.measure.dim == 1
            wanted = "be one number" if one else f"have {self.measure.dim} numbers, one for each input"
            raise ValueError(f"{name} must {wanted}, got {brief(x)}")
        return read_only(self.measure.check_points(row, name, self.inputs)[0].copy())

    def _checked_initial(self, initial: Initial) -> list[Choice]:
        design = []
        if not isinstance(initial, Iterable):
            raise TypeError(f"initial must be a list of (source, x), got {brief(initial)}")
        for i, entry in enumerate(initial):
            if not isinstance(entry, Sequence) or len(entry) != 2 or isinstance(entry[0], float):
                raise TypeError(f"initial must be a list of (source, x), got {brief(entry)} as its entry {i}")
            source = self.source_number(entry[0], f"source of initial[{i}]")
            design.append(Choice(source, self.location(entry[1], f"x of initial[{i}]")))
        return design

    def of_output(self, output: int) -> Self:
        """Return the description of the run for one of several outputs alone."""
        assert self.outputs is not None
        return replace(
            self,
            sources=tuple(source.of_output(self.outputs, output) for source in self.sources),
            outputs=None,
            targets=[self.targets[output]],
            ranges=[self.ranges[output]],
            goals=Goals(),
            labels=self.labels.of_output(self.outputs[output]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the description in JSON-serialisable form, without the functions, which are described elsewhere."""
        several = {} if self.outputs is None else {"outputs": self.outputs, "weights": self.goals.importance}
        priced = {} if self.goals.error_cost is None else {"error_cost": self.goals.error_cost.tolist()}
        return {
            "sources": [_described(name, source) for name, source in zip(self.names, self.sources, strict=True)],
            "measure": self.measure.to_dict(),
            "model": self.model.to_json(),
            "acquisition": self.acquisition,
            "seed": self.seed,
            "initial": self.initial and [[choice.source, choice.x.tolist()] for choice in self.initial],
            "order": self.order,
            "target": targets_to_json(self.targets, self.outputs),
            **range_arguments(self.ranges, self.outputs),
            "limit": self.limit,
            **several,
            **priced,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], budget: float, labels: Labels | None = None) -> Self | None:
        """Rebuild a description from the output of `to_dict`; None if the measure or the model cannot be rebuilt.

        Its sources have no functions. ``labels`` are not part of the content, because no number depends on them. Costs
        that were functions of the input become learned ones.
        """
        if content["model"] is None or content["measure"] is None:
            return None
        try:
            measure = measure_from_dict(content["measure"])
            model: Any = content["model"]
            model = model if isinstance(model, str) else gp_from_dict(model)
        except ValueError:
            return None
        outputs = content.get("outputs")
        made = cls.of(
            [_rebuilt(source) for source in content["sources"]],
            measure,
            budget=None if math.isinf(budget) else budget,
            model=model,
            acquisition=content["acquisition"],
            seed=content["seed"],
            initial=content["initial"],
            order=content.get("order"),
            target=targets_from_json(content.get("target", "mean"), outputs),
            outputs=outputs,
            weights=content.get("weights"),
            output_range=content.get("output_range"),
            log=content.get("log", False),
            limit=content.get("limit", False),
            error_cost=content.get("error_cost"),
        )
        return replace(made, labels=labels or Labels())


def _described(name: str, source: Source) -> dict[str, Any]:
    cost = f"function {getattr(source.cost, '__name__', 'of x')}" if callable(source.cost) else source.cost
    described = {"name": name, "cost": cost, "noise": source.noise, "valid": source.valid}
    if source.gradient is not None:
        described["gradient_cost"] = source.gradient_cost
    named = {"outputs": source.outputs, "inputs": source.inputs, "fidelity": source.fidelity}
    return described | {key: value for key, value in named.items() if value is not None}


def _rebuilt(described: Mapping[str, Any]) -> Source:
    name, cost, noise, valid = (described[key] for key in ("name", "cost", "noise", "valid"))
    paid: Any = "measured" if isinstance(cost, str) else cost
    outputs, fidelity = (described.get(key) for key in ("outputs", "fidelity"))
    return Source(cost=paid, noise=noise, valid=valid, name=name, outputs=outputs, fidelity=fidelity)
