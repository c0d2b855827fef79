"""The examples run as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_epidemic_as_a_script():
    shown = subprocess.run(
        [sys.executable, EXAMPLES / "epidemic" / "script.py", "1.003"], check=True, capture_output=True, text=True
    ).stdout
    assert "integral: 7" in shown  # the truth is 70.5
    assert "equations" in shown


def test_the_ball_draws_its_picture(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "ball.png"
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, EXAMPLES / "ball.py", picture, "--seeds", "1", "--budget", "2.05"]
    subprocess.run(command, check=True, env=environment)
    assert picture.read_bytes().startswith(b"\x89PNG")
