"""Are poisoned reports detected? The p-value of the tests, by the share of poisoned reports."""

# %%
import sys

import numpy as np
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.auditing import watch
from hdr4me.tally import Tally

# %% Users with normally distributed ages, and poisoned reports of the cell with the largest decoded value.
rng = np.random.default_rng(1)
survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120)]), epsilon=1.0)
channel = survey.channels[0]
rows = np.array(channel.weights) / 2**32
level = np.linspace(0, 120, len(rows))
ages = np.exp(-(((level - 45) / 18) ** 2) / 2)
expected = ages / ages.sum() @ rows
worst = int(np.argmax(channel.decoders["value"]))


def p_value(share: float, n: int) -> float:
    """The smallest adjusted p-value of all alarms; 1 without an alarm."""
    tally = Tally(survey)
    tally.counts[:] = rng.multinomial(n - round(share * n), expected / expected.sum())
    tally.counts[worst] += round(share * n)
    tally.n_reports = n
    return max(
        1e-12, min([alarm.p_value for alarm in watch(tally, false_alarm_rate=0.5).alarms], default=1.0)
    )


# %%
shares = [0, 0.002, 0.005, 0.01, 0.02, 0.05]
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
for n in (10_000, 100_000):
    axes.plot([100 * s for s in shares], [p_value(s, n) for s in shares], "o-", label=f"{n:,} reports")
axes.axhline(0.001, color="gray", ls=":", label="alarm")
axes.set(yscale="log", xlabel="poisoned reports (%)", ylabel="adjusted p-value (at least 1e-12)")
axes.legend(frameon=False)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "poisoned_reports.png", dpi=100)
