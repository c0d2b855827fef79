"""Sources outside of this process: Python functions by name, commands, and UM-Bridge servers."""

from .execution.commands import Command
from .execution.functions import PythonFunction
from .execution.umbridge import UMBridge

__all__ = ["Command", "PythonFunction", "UMBridge"]
