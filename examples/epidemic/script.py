"""How many people will be ill at the same time, and when, if the infection rate is uncertain?

    python examples/epidemic/script.py [budget]

Takes half a minute, and needs nothing but amsbq.
"""

import sys

from scipy import stats
from simulators import equations, stochastic

import amsbq

budget = float(sys.argv[1]) if len(sys.argv) > 1 else 4.02
sources = [
    amsbq.Source(stochastic, cost=1.0, name="stochastic", valid={"peak": (1, 100)}),
    amsbq.Source(equations, cost=1 / 2000, name="equations", valid={"peak": (1, 100)}),
]
infection_rate = stats.gamma(5, loc=1, scale=4)

result = amsbq.integrate(sources, infection_rate, budget=budget, outputs=["peak", "time"])
print(result)
