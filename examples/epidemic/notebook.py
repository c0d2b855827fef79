# %% [markdown]
# # How many people will be ill at the same time?
#
# A stochastic simulation of an epidemic among 100 people is expensive; the differential equations are cheap, and too
# high. The infection rate is not known: it has a distribution. Open this file as a notebook, or run it as a script.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from simulators import equations, stochastic

import amsbq

# %% [markdown]
# ## The problem
# Two sources and what they cost, the primary one first, and the distribution of the input.

# %%
sources = [
    amsbq.Source(stochastic, cost=1.0, name="stochastic"),
    amsbq.Source(equations, cost=1 / 2000, name="equations"),
]
infection_rate = stats.gamma(5, loc=1, scale=4)

# %% [markdown]
# ## Ask and tell
# `amsbq.integrate(sources, infection_rate, budget=3.01)` does all of this in one call. An integrator does it step by
# step, for when simulations are run by somebody or something else.

# %%
it = amsbq.Integrator(sources, infection_rate, budget=3.01)
while (query := it.ask()) is not None:
    answer = sources[query.source].function(query.x)
    if query.source == 0:
        it.tell(query, answer.value, answer.variance)
    else:
        it.tell(query, answer)
print(it.estimate())

# %% [markdown]
# ## What it did

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
rates = np.linspace(1.5, 50, 200)
for source, (name, style) in enumerate([("stochastic", "C0-"), ("equations", "C1--")]):
    mean, variance = it.knowledge.belief.predict(source, rates[:, None])
    left.plot(rates, mean, style, label=name)
    left.fill_between(rates, mean - 2 * variance**0.5, mean + 2 * variance**0.5, color=style[:2], alpha=0.15)
    made = [e for e in it.evaluations if e.source == source]
    left.plot([e.x[0] for e in made], [e.value for e in made], style[:2] + "o", markersize=4)
left.set(xlabel="infection rate / recovery rate", ylabel="most people ill at once", ylim=(0, 105))
left.legend(frameon=False, loc="lower right")

steps = [(k, e.mean, 2 * e.std) for k, e in enumerate(it.evaluations, 1) if np.isfinite(e.std)]
k, mean, band = np.transpose(steps)
right.errorbar(k, mean, band, fmt="o", markersize=3, color="C0", ecolor="C7")
right.axhline(70.49, color="k", linestyle=":")
right.set(xlabel="evaluation", ylabel="expected number ± 2 std (dotted: truth)", ylim=(40, 100))
plt.show()
