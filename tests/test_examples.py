"""The examples run as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_forrester_draws_its_picture(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "forrester.png"
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, EXAMPLES / "forrester.py", picture], check=True, env=environment)
    assert picture.read_bytes().startswith(b"\x89PNG")
