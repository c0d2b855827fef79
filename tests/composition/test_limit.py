"""The limit composes with what else there is; with the default model, which has it, each setup takes its time."""

from dataclasses import replace

import pytest

from .checks import check
from .setups import Setup

LIMIT = Setup(model="auto", wanted="limit")
SETUPS = [
    replace(LIMIT, inputs="dependent", outputs="several", noise="learned", front="ask and tell"),
    replace(LIMIT, values="log", gradients="gradients"),
    replace(LIMIT, inputs="discrete", values="range", target="exceedance", front="journal"),
    replace(LIMIT, outputs="many", cost="measured", execution="workers", noise="reported"),
    replace(LIMIT, inputs="empirical", target="quantile", gradients="gradients", front="detached"),
]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_features_beside_the_limit(setup, tmp_path):
    check(setup, tmp_path)
