"""Sources outside this process: Python functions imported by name, commands, and UM-Bridge servers."""

from .simulators.commands import Command
from .simulators.functions import PythonFunction
from .simulators.umbridge import UMBridge

__all__ = ["Command", "PythonFunction", "UMBridge"]
