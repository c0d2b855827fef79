"""Plain values for JSON."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """What JSON can hold: lists for arrays, null for NaN and infinity, which are no numbers."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
