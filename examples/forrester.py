"""Draw the paper's two-source demonstration: the posterior of both sources, and what it says of the integral.

    python examples/forrester.py [picture.png]

Needs matplotlib: pip install 'amsbq[plot]'.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from amsbq.experiments import forrester

picture = sys.argv[1] if len(sys.argv) > 1 else "forrester.png"
posterior = forrester.starting_posterior()
alone = forrester.starting_posterior(sources=(0,))
truth = forrester.true_integral()

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), width_ratios=[3, 1], layout="constrained", gridspec_kw={"wspace": 0.05}
)
x = np.linspace(0, 1, 400)
for source, (function, colour, name) in enumerate(
    [(forrester.primary, "C0", "$f_1$, expensive"), (forrester.secondary, "C1", "$f_2$, cheap")]
):
    mean, variance = posterior.predict(source, x)
    band = 2 * np.sqrt(variance)
    left.fill_between(x, mean - band, mean + band, color=colour, alpha=0.2, linewidth=0)
    left.plot(x, mean, color=colour, label=name)
    left.plot(x, function(x), color=colour, linestyle=":", linewidth=1)
    observed = posterior.sources == source
    left.plot(posterior.X[observed], posterior.y[observed], "o", color=colour, markersize=5)
left.set(xlabel="$x$", ylabel="output", title="posterior mean ± 2 std (dotted: the truth)", xlim=(0, 1))
left.legend(frameon=False, loc="upper left")

z = np.linspace(-5, 3.5, 400)
for post, colour, name in ((alone, "0.6", "$f_1$ alone"), (posterior, "C0", "$f_1$ and $f_2$")):
    mean, variance = post.integral()
    density = stats.norm(mean, np.sqrt(variance)).pdf(z)
    right.fill_betweenx(z, density, color=colour, alpha=0.3, linewidth=0)
    right.plot(density, z, color=colour, label=name)
right.axhline(truth, color="k", linestyle=":", linewidth=1)
right.annotate("truth", (0.98, truth), xycoords=("axes fraction", "data"), ha="right", va="bottom")
right.set(title=r"belief about $\int f_1$", ylabel="integral", xticks=[], xlim=(0, None))
right.legend(frameon=False, loc="lower right")
figure.savefig(picture, dpi=150)
