"""What if many values are missing? The share of people with an income and their mean income, from one report."""

# %%
import sys

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

# %% 40 % of the people have no income. Counting them as the middle of the range would bias the mean.
rng = np.random.default_rng(1)
incomes = np.clip(rng.lognormal(3.4, 0.4, 40_000), 0, 100)
there = rng.random(40_000) < 0.6
people = pa.table({"income": pa.array(incomes, mask=~there)})
means = {}
for name, optional in (("missing counts as 50", False), ("income is optional", True)):
    survey = hd.Survey(hd.Schema([hd.Numeric("income", 0, 100, optional=optional)]), epsilon=2.0)
    answer = simulate_tally(people, survey, seed=1).estimate().means
    low, high = answer.interval(0.95)
    means[name] = (answer.value[0], low[0], high[0])

# %%
figure = Figure(figsize=(6.4, 2.6), layout="constrained")
axes = figure.subplots()
for place, (_, (value, low, high)) in enumerate(means.items()):
    axes.errorbar(value, place, xerr=[[value - low], [high - value]], fmt="o", color="#0b6e99")
axes.axvline(incomes[there].mean(), color="k", ls="--", label="true mean of people with an income")
axes.set_yticks([0, 1], list(means))
axes.set(xlabel="mean income (thousands)", ylim=(-0.6, 1.6))
axes.legend(frameon=False, fontsize=8)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "missing_values.png", dpi=100)
