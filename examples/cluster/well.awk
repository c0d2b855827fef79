#!/usr/bin/awk -f
# The drawdown of a well, as a program that knows nothing of Python: it reads a deck such as well.deck and prints a report.
#
# Radial flow to a well that pumps at a constant rate, on a grid of the logarithm of the distance, with implicit steps
# that are longer and longer.

/^[ \t]*[a-z]+[ \t]*=/ { deck[$1] = $3 }

END {
    pi = atan2(0, -1); T = deck["transmissivity"]; S = deck["storage"]; n = deck["cells"]; steps = deck["steps"]
    first = log(0.1); h = (log(50000) - first) / n
    ratio = exp(log(deck["days"] / 1e-5) / steps); t = 1e-5
    for (k = 0; k <= steps; k++) {
        dt = k ? t * (ratio - 1) : t
        if (k) t = t * ratio
        # S r^2 (s - old) / dt = T s'', with the well's rate at the first node, and no drawdown at the last one
        for (i = 0; i < n; i++) {
            m = S * exp(2 * (first + i * h)) * h * h / (dt * T)
            p = 2 + m - (i ? c[i - 1] : 0)
            c[i] = (i ? 1 : 2) / p
            g[i] = (m * s[i] + (i ? g[i - 1] : deck["rate"] * h / (pi * T))) / p
        }
        s[n] = 0
        for (i = n - 1; i >= 0; i--) s[i] = g[i] + c[i] * s[i + 1]
    }
    x = (log(deck["distance"]) - first) / h; i = int(x)
    printf "time %g d\ndrawdown %.8f m\n", t, s[i] + (x - i) * (s[i + 1] - s[i])
}
