"""Calling conventions of a source's function: with the array of its inputs, or with each input by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..common.definitions import definition_of, gradient_or_reason
from ..common.messages import suggestion
from ..common.validation import Array, brief
from .observations import Observation, Wrapper


@dataclass(frozen=True)
class Call(Wrapper):
    """A function of some inputs, as a function of all inputs: x of shape (D,), or X of shape (n, D).

    Parameters
    ----------
    function : callable
        Called with the array of its inputs, or with each input by name; categories are then passed as their names.
    own : tuple of int
        Indices of its inputs.
    dim : int
        D, the number of all inputs.
    names : tuple of str
        Names by which it is called; empty if it is called with an array.
    categories : tuple of (int, tuple of str)
        The names of the values of inputs that have categories, by the indices of these inputs.
    """

    function: Callable[..., Any]
    own: tuple[int, ...]
    dim: int
    names: tuple[str, ...] = ()
    categories: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def __call__(self, x: Array) -> Any:
        """Return the function's value at x; derivatives, if any, are with respect to all inputs."""
        found = self._called(x)
        if not isinstance(found, Observation):
            return found
        return replace(found, gradient=gradient_or_reason(self.by_all, found.gradient))

    def _called(self, x: Array) -> Any:
        if not self.names:
            return self.function(x[..., list(self.own)])
        labels = dict(self.categories)
        values = [np.array(labels[d])[x[..., d].astype(int)] if d in labels else x[..., d] for d in self.own]
        plain = [value.item() if value.ndim == 0 else value for value in values]
        return self.function(**dict(zip(self.names, plain, strict=True)))

    def by_all(self, gradient: Any) -> Any:
        """Extend the gradient in its own inputs to all inputs, with zeros: (D,), or (M, D) with several outputs."""
        if isinstance(gradient, Mapping):
            return {name: self.by_all(slopes) for name, slopes in gradient.items()}
        slopes = np.asarray(gradient, dtype=float)
        if slopes.shape[-1:] != (len(self.own),):
            raise ValueError(
                f"gradient must have {len(self.own)} derivatives, one for each input, got {brief(gradient)}"
            )
        found = np.zeros((*slopes.shape[:-1], self.dim))
        found[..., list(self.own)] = slopes
        return found

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", None) or type(self.function).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return the definition of the function in JSON-serialisable form, with its inputs if it lacks some."""
        fewer = {} if self.names or self.own == tuple(range(self.dim)) else {"inputs": list(self.own)}
        return {**definition_of(self.function), **fewer}


class GradientCall(Call):
    """The gradient of a function of some inputs, as a function of all."""

    def __call__(self, x: Array) -> Any:
        """Return the derivatives with respect to all inputs."""
        return self.by_all(self._called(x))


def own_inputs(wanted: Sequence[str] | None, names: Sequence[str], source: str) -> tuple[int, ...]:
    """Return the indices of the inputs of a source, by default all; raise ValueError if there is no such input."""
    if wanted is None:
        return tuple(range(len(names)))
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"{source} has no input {name!r}{suggestion(name, names)}: the inputs are {', '.join(names)}"
            )
    return tuple(list(names).index(name) for name in wanted)


def parameters_by_name(function: Any, names: Sequence[str], called: str = "the function") -> tuple[str, ...]:
    """Return the inputs that a function takes by name; none if it takes an array.

    It takes them by name if it has two or more parameters without defaults, all of them names of inputs, or if it
    cannot be called with an array. If it can be called neither way, an error is raised that refers to it as ``called``.

    >>> parameters_by_name(lambda speed, angle, drag=0.3: 0.0, ["speed", "angle", "wind"])
    ('speed', 'angle')
    >>> parameters_by_name(lambda x: 0.0, ["x", "y"])
    ()
    """
    signature = _signature(function, called)
    if signature is None:
        return ()
    parameters = signature.parameters.values()
    keywords = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    other = [p.name for p in required if p not in keywords or p.name not in names]
    if len(required) >= 2 and 0 < len(other) < len(required):
        raise ValueError(
            f"{called} has the parameter {other[0]!r}, which is not an input"
            f"{suggestion(other[0], names)}: the inputs are {', '.join(names)}"
        )
    if len(required) < 2 or other:
        why_not = _misfit(signature.bind, ["x"], {})
        if not why_not:
            return ()
        if _misfit(signature.bind, [], dict.fromkeys(names)):
            own = [p.name for p in required]
            remedy = f". If these are its inputs, in order, give names={own}" if len(own) == len(names) else ""
            raise ValueError(
                f"{called} cannot be called with one array x, which has a number for each input: {why_not}; nor with "
                f"all inputs by name: {', '.join(names)}{remedy}"
            )
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return tuple(names)
    known = {p.name for p in keywords}
    return tuple(name for name in names if name in known)


def _signature(function: Any, called: str) -> inspect.Signature | None:
    """Return the signature of a function, omitting parameters already bound; None for a compiled function."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        if isinstance(function, partial) and (whole := _signature(function.func, called)) is not None:
            fixed = ", ".join(f"{name}={value!r}" for name, value in function.keywords.items())
            name = getattr(function.func, "__name__", "the function")
            why = _misfit(whole.bind_partial, function.args, function.keywords)
            raise ValueError(f"{called} calls {name} with {fixed}: {why}") from None
        return None


def _misfit(bind: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return the reason why ``bind`` of a signature rejects these arguments; empty if it accepts them.

    >>> _misfit(inspect.signature(lambda x, h: 0.0).bind, ["x"], {"dt": 0.1})
    "missing a required argument: 'h'"
    """
    try:
        bind(*given, **named)
    except TypeError as error:
        return str(error)
    return ""


def as_call(
    function: Any,
    names: Sequence[str],
    own: tuple[int, ...],
    categories: Mapping[int, tuple[str, ...]],
    called: str = "the function",
    kind: type[Call] = Call,
) -> Any:
    """Return a function of some inputs as a function of all; unchanged if it already is one.

    Parameters
    ----------
    function : callable
    names : list of str
        Names of all inputs.
    own : tuple of int
        Indices of the inputs that it has.
    categories : dict of tuple of str by input
        Names of the values of categorical inputs.
    called : str
        Its name in error messages.
    kind : type
        `GradientCall` for the function of a gradient.
    """
    by_name = parameters_by_name(function, [names[d] for d in own], called)
    if not by_name and own == tuple(range(len(names))):
        return function
    taken = tuple(list(names).index(name) for name in by_name) if by_name else own
    return kind(function, taken, len(names), by_name, tuple(categories.items()))
