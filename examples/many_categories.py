"""Which of 5,000 pages are most popular? The pages that are significantly more frequent than all others."""

# %%
import sys

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

# %% Visits follow Zipf's law. A report has at most four bytes.
rng = np.random.default_rng(1)
pages = [f"page {i}" for i in range(5000)]
shares = 1 / np.arange(1, 5001)
shares /= shares.sum()
visits = rng.choice(5000, 200_000, p=shares)
survey = hd.Survey(hd.Schema([hd.Categorical("page", pages)]), epsilon=4.0)
tally = simulate_tally(pa.table({"page": np.array(pages)[visits]}), survey, seed=1)

# %% The intervals hold jointly for all 5,000 pages with 95 % probability.
top = tally.estimate().frequencies("page").top(12)
low, high = top.interval(0.95, simultaneous=True)
truth = np.array([shares[pages.index(str(name))] for name in top.categories])
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
places = np.arange(len(top))
axes.errorbar(
    top.value, places, xerr=[top.value - low, high - top.value], fmt="o", color="#0b6e99", label="estimate"
)
axes.plot(truth, places, "k|", markersize=14, label="true share")
axes.set_yticks(places, [str(name) for name in top.categories])
axes.invert_yaxis()
axes.set(xlabel="share of visits", title=f"{survey.channels[0].mechanism}, 200,000 users, ε = 4")
axes.legend(frameon=False)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "many_categories.png", dpi=100)
