"""The array type of the arena, not imported from the library, as the arena also runs older releases of it."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
