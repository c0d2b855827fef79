"""Run the command line as ``python -m amsbq``."""

import sys

from .cli.main import main

sys.exit(main())
