"""What does an average day look like? 24 hourly means that are points of one curve."""

# %%
import sys

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

# %% Every device has 24 numbers and reports one of them. `curve` declares that the hours are ordered.
rng = np.random.default_rng(1)
hours = np.arange(24)
day = 0.45 * np.exp(-(((hours - 8) / 2.0) ** 2)) + 0.7 * np.exp(-(((hours - 18) / 2.5) ** 2))
people = np.clip(day + rng.normal(0, 0.15, (20_000, 24)), 0, 1)
schema = hd.Schema([hd.Numeric(f"{h:02d}", 0, 1, curve="day") for h in hours])
survey = hd.Survey(schema, epsilon=0.5)
tally = simulate_tally(pa.table({f"{h:02d}": people[:, h] for h in hours}), survey, seed=1)

# %% Raw means are unbiased and noisy. Re-calibration uses the order of the hours and estimates its own error.
raw = tally.estimate()
better = raw.recalibrate()
low, high = raw.interval(0.95)
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
axes.errorbar(
    hours, raw.value, [raw.value - low, high - raw.value], fmt="o", color="#9fc5d6", label="raw, 95 %"
)
axes.plot(hours, better.value, color="#0b6e99", lw=2, label="re-calibrated")
axes.plot(hours, people.mean(axis=0), "k--", lw=1, label="true mean")
axes.set(xlabel="hour", ylabel="mean activity", title="20,000 users, ε = 0.5")
axes.legend(frameon=False)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "hourly_curve.png", dpi=100)
