# %% [markdown]
# # How many people will be ill at the same time?
#
# A stochastic simulation of an epidemic among 100 people is expensive; the differential equations are cheap, and their
# answer is too high. The infection rate is uncertain: it has a distribution. Open this file as a notebook, or run it as
# a script.

# %%
import matplotlib.pyplot as plt
from scipy import stats
from simulators import equations, stochastic

import amsbq
from amsbq import plots

# %% [markdown]
# ## The problem
# Two sources with their costs, the primary one first, and the distribution of the input.

# %%
sources = [
    amsbq.Source(stochastic, cost=1.0, name="stochastic"),
    amsbq.Source(equations, cost=1 / 2000, name="equations"),
]
infection_rate = stats.gamma(5, loc=1, scale=4)

# %% [markdown]
# ## Ask and tell
# `amsbq.integrate(sources, infection_rate, budget=3.01)` does all of this in one call. An `Integrator` does it step by
# step, for simulations that are run elsewhere.

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
# ## What was evaluated

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plots.sources(it, left)
left.set(xlabel="infection rate / recovery rate", ylabel="most people ill at once", ylim=(0, 105))
plots.convergence(it, right)
right.axhline(70.49, color="k", linestyle=":")
right.set(ylabel="expected number (dotted: truth)", ylim=(40, 100))
plt.show()

# %% [markdown]
# ## Can the answer be trusted?

# %%
for finding in amsbq.Result.of(it, "budget").diagnose():
    print(finding)
