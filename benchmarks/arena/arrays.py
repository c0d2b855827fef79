"""The type of arrays here: the arena runs older releases of the library too, and imports nothing of theirs for it."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
