"""What is the median income? Quantiles with intervals that are valid for any distribution."""

# %%
import sys

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

# %% `purpose="distribution"` chooses a mechanism that estimates distributions accurately.
rng = np.random.default_rng(1)
incomes = np.clip(rng.lognormal(10.3, 0.5, 30_000), 0, 130_000)
survey = hd.Survey(hd.Schema([hd.Numeric("income", 0, 130_000)]), epsilon=1.0, purpose="distribution")
tally = simulate_tally(pa.table({"income": incomes}), survey, seed=1)

# %%
shares = [0.1, 0.25, 0.5, 0.75, 0.9]
answer = hd.ask(tally, "quantile", "income", p=shares)
low, high = answer.interval(0.95)
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
axes.errorbar(
    shares,
    answer.value,
    [answer.value - low, high - answer.value],
    fmt="o",
    color="#0b6e99",
    label="estimate",
)
axes.plot(shares, np.quantile(incomes, shares), "k_", markersize=16, label="true quantile")
axes.set(xlabel="share of people below", ylabel="income", title="30,000 users, ε = 1")
axes.legend(frameon=False)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "median_income.png", dpi=100)
