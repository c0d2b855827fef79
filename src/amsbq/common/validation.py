"""Checks of arguments, and the array types of the package.

Each function returns its argument in one checked form, or raises one clear error before any work is done: what was
given, what is accepted, how to fix it. ``name`` is the argument's name in that error.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
#: One number, or with several outputs an array of one for each: whether there are several is known only in a run.
Values: TypeAlias = Any
#: Everything that ``rng`` may be: a seed, a NumPy generator, or None.
RNGLike: TypeAlias = int | np.random.Generator | None

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

#: Entries of a symmetric matrix may differ by this share of their scale: more than rounding, less than any mistake.
SYMMETRY_TOLERANCE = 1e-10

#: Maximum number of characters of a value in an error message: fits on one line together with the explanation.
BRIEF_LENGTH = 60


def numbers(value: ArrayLike, name: str) -> Array:
    """Return finite real numbers as a read-only float array of the same shape."""
    raw = _regular(value, name)
    if raw.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got {brief(value)} of dtype {raw.dtype}")
    array = np.array(raw, dtype=float)
    if not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        where = f" at index {_index(bad)}" if array.ndim else ""
        raise ValueError(f"{name} must be finite, got {array[bad][0]}{where}")
    return read_only(array)


def number(value: ArrayLike, name: str) -> float:
    """Return one finite real number.

    All numbers are checked here: arguments, values that sources return, and answers of programs and servers. Numbers of
    Python and NumPy and arrays of one element are accepted; booleans, text, bytes, complex numbers, dates, None and
    masked entries are not.

    >>> number(np.array([2]), "value"), number(10**30, "value")
    (2.0, 1e+30)
    """
    if np.ma.is_masked(value):
        raise ValueError(f"{name} is masked: there is no number")
    if isinstance(value, int) and not isinstance(value, bool):  # integers too large for NumPy
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name} must fit a float, got an integer of {value.bit_length()} bits") from None
    raw = _regular(value, name)
    if raw.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number, got {brief(value)}")
    if raw.size != 1:
        raise ValueError(f"{name} must be one number, got shape {raw.shape}")
    return float(numbers(raw, name).item())


def positive_number(value: ArrayLike, name: str) -> float:
    """Return one finite number above zero."""
    return float(positive(np.asarray(number(value, name)), name))


def non_negative_number(value: ArrayLike, name: str) -> float:
    """Return one finite number that is not negative."""
    return float(non_negative(np.asarray(number(value, name)), name))


def vector(value: ArrayLike, name: str, length: int) -> Array:
    """Return a vector of that length; one number stands for all entries."""
    array = numbers(value, name)
    if array.shape not in ((), (length,)):
        raise ValueError(f"{name} must be one number or {length} of them, got shape {array.shape}")
    return np.broadcast_to(array, (length,))


def positive(array: Array, name: str) -> Array:
    """Return the array if all of its entries are above zero."""
    if (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {brief(array)}")
    return array


def non_negative(array: Array, name: str) -> Array:
    """Return the array if none of its entries is below zero."""
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {brief(array)}")
    return array


def points(X: ArrayLike, dim: int | None, name: str = "X") -> Array:
    """Return points as rows of an (n, D) array; for a single input, n numbers become an (n, 1) array."""
    array = numbers(X, name)
    if array.ndim == 1 and (dim in (None, 1) or array.size == 0):
        array = array.reshape(array.size, dim or 1)
    if array.ndim == 2 and array.shape[1] and dim in (None, array.shape[1]):
        return array
    wanted = "D" if dim is None else dim
    hint = f"; for one point pass {name}[None, :]" if array.shape == (dim,) else ""
    raise ValueError(f"{name} must have shape (n, {wanted}), one row per point, got shape {array.shape}{hint}")


def source_numbers(sources: ArrayLike, n_sources: int, n: int) -> IntArray:
    """Return one valid source number for each of n points, shape (n,); a single number stands for all of them."""
    raw = _integers(sources, n_sources, "sources")
    if raw.shape not in ((), (n,)):
        raise ValueError(f"sources must be one number for each of the {n} points, got shape {raw.shape}")
    return read_only(np.array(raw if raw.shape else np.broadcast_to(raw, (n,)), dtype=np.intp))


def source_number(source: Any, n_sources: int, name: str = "source", names: Sequence[str] = ()) -> int:
    """Return one valid source number; the source may also be given by its name, one of ``names``."""
    if names and isinstance(source, str):
        if source not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}, or its number, got {source!r}")
        return list(names).index(source)
    if type(source) is int and 0 <= source < n_sources:
        return source
    raw = _integers(source, n_sources, name)
    if raw.shape != ():
        raise ValueError(f"{name} must be a single number 0 to {n_sources - 1}, got shape {raw.shape}")
    return int(raw)


def correlations(matrix: Array, name: str) -> Array:
    """Return a covariance matrix scaled to unit variances, if it is symmetric on that scale.

    Rows of a covariance matrix may have units that differ by orders of magnitude; correlations have none.
    """
    variances = np.diagonal(matrix)
    deviations = np.sqrt(np.where(variances > 0, variances, 1))
    scaled = matrix / deviations / deviations[:, None]
    asymmetry = np.abs(scaled - scaled.T).max()
    if asymmetry > SYMMETRY_TOLERANCE:
        raise ValueError(f"{name} must be symmetric, got entries that differ by {asymmetry:.1e} of their scale")
    return scaled


def read_only(array: AnyArray) -> AnyArray:
    """Make an array read-only, and return it."""
    array.setflags(write=False)
    return array


def count(n: Any, name: str) -> int:
    """Return a whole number that is not negative."""
    try:
        n = index(n)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {brief(n)}") from None
    if n < 0:
        raise ValueError(f"{name} must not be negative, got {n}")
    return int(n)


def seed_number(seed: RNGLike, rng: RNGLike) -> int:
    """Return the seed of a run from ``seed`` or ``rng``, of which at most one is given; 0 if neither is.

    A generator draws the seed, so that successive runs with one generator have different seeds.
    """
    if seed is not None and rng is not None:
        raise ValueError("give either seed or rng, not both")
    name, given = ("seed", seed) if rng is None else ("rng", rng)
    if isinstance(given, np.random.Generator):
        return int(given.integers(2**31))
    return 0 if given is None else count(given, name)


def brief(value: Any) -> str:
    """Return a value as one would type it, shortened to fit on a line of an error message."""
    try:
        text = repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
    except Exception:  # such as for integers of more digits than Python prints
        text = f"something of type {type(value).__name__}"
    return cut_short(" ".join(text.split()) if "\n" in text else text)


def cut_short(text: str) -> str:
    """Return ``text``, shortened to fit on a line of an error message together with the explanation."""
    return text if len(text) <= BRIEF_LENGTH else text[: BRIEF_LENGTH - 3] + "..."


def value_range(valid: Any) -> tuple[float, float]:
    """Return a range of values, (low, high) with low below high; both may be infinite."""
    try:
        low, high = (float(end) for end in valid)
    except (TypeError, ValueError):
        raise TypeError(f"valid must be a pair (low, high), got {brief(valid)}") from None
    if np.isnan([low, high]).any() or not low < high:
        raise ValueError(f"valid must be (low, high) with low below high, got {brief(valid)}")
    return low, high


def numbers_text(
    value: Values,
    digits: int = 6,
    most: int = 4,
    names: Sequence[str] | None = None,
    std: Values | None = None,
    units: Sequence[str] = (),
) -> str:
    """Return a number, or the first few of several, as text with a number of significant digits, with names if given.

    With standard deviations, these are shown too, and as many digits as they justify. ``units`` has one per number.

    >>> numbers_text(0.5), numbers_text(np.array([0.5, np.nan])), numbers_text(np.arange(9.0), most=2)
    ('0.5', '0.5, nan', '0, 1, ... (9 in all)')
    >>> numbers_text(np.array([0.5, 12.0]), names=["peak", "time"])
    'peak 0.5, time 12'
    >>> numbers_text(np.array([0.5, 12.0]), std=np.array([0.012, 1.5]))
    '0.500 ± 0.012, 12.0 ± 1.5'
    """
    values = np.atleast_1d(value).tolist()
    if std is None:
        listed = [f"{each:.{digits}g}" for each in values]
    else:
        listed = list(map(plus_minus, values, np.atleast_1d(std).tolist()))
    if any(units):
        listed = [f"{each} {unit}".rstrip() for each, unit in zip(listed, units, strict=True)]
    shown = listed if names is None else [f"{name} {each}" for name, each in zip(names, listed, strict=True)]
    return ", ".join(shown[:most]) + ("" if len(shown) <= most else f", ... ({len(shown)} in all)")


def as_known(value: float, std: float) -> str:
    """Return a number as text, with as many decimals as its standard deviation has with two digits.

    >>> as_known(70.4321, 0.74), as_known(70.4321, 12.0), as_known(70.4321, 0.0), as_known(1.23e9, 4.5e7)
    ('70.43', '70', '70.432100', '1.23e+09')
    >>> as_known(1.000000003, 4.5e-14), as_known(2.34567e-6, 5.9e-8)
    ('1.000000003', '2.346e-06')
    """
    if not np.isfinite(std):
        return f"{value:.6g}"
    if std and not 1e-6 < std < 1e6:  # many zeros would be hard to read
        known = np.log10(np.maximum(np.abs(value), np.finfo(float).tiny)) // 1 - np.log10(std) // 1 + 2
        return f"{value:.{int(np.clip(known, 2, 15))}g}"
    return f"{value:.{max(0, 1 - int(np.floor(np.log10(std)))) if std else 6}f}"


def plus_minus(mean: float, std: float, unit: str = "") -> str:
    """Return a mean and its standard deviation as text, to as many digits as that justifies, with their unit.

    >>> plus_minus(70.4321, 0.7369, "people"), plus_minus(0.5, np.nan)
    ('70.43 ± 0.74 people', '0.5')
    """
    known = f"{mean:.6g}" if np.isnan(std) else f"{as_known(mean, std)} ± {as_known(float(f'{std:.2g}'), std)}"
    return f"{known} {unit}".rstrip()


def _regular(value: Any, name: str) -> NDArray[Any]:
    """Return an array of any type; an error if it has masked entries or rows of different lengths."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries: remove them")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a regular array, got rows of different lengths: {brief(value)}") from None


def _integers(sources: Any, n_sources: int, name: str) -> NDArray[Any]:
    """Return an array of integers from 0 to n_sources - 1."""
    raw = _regular(sources, name)
    if raw.size == 0:
        raw = raw.astype(int)
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers from 0 to {n_sources - 1}, got {brief(sources)} of dtype {raw.dtype}")
    bad = (raw < 0) | (raw >= n_sources)
    if bad.any():
        raise ValueError(f"there is no source {raw[bad][0]}: the model has {n_sources}, numbered 0 to {n_sources - 1}")
    return raw


def _index(mask: NDArray[np.bool_]) -> int | tuple[int, ...]:
    """Return the index of the first True."""
    first = tuple(int(i) for i in np.argwhere(mask)[0])
    return first[0] if len(first) == 1 else first
