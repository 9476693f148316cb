"""Is a pilot worthwhile? Two rounds, the second with a narrower range, compared with one round of the same size."""

# %%
import sys

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally

# %% Most delays are small, but the range must include large ones. Each user reports in one of the rounds.
rng = np.random.default_rng(1)
delays = np.clip(rng.gamma(1.5, 12, 40_000) - 10, -60, 600)
schema = hd.Schema([hd.Numeric("delay", -60, 600)])
survey = hd.Survey(schema, epsilon=4.0)
one, two = [], []
for seed in range(8):
    order = rng.permutation(delays)
    one.append(simulate_tally(pa.table({"delay": order}), survey, seed=seed).estimate().value[0])
    pilot = simulate_tally(pa.table({"delay": order[:8000]}), survey, seed=seed)
    following, control, _ = hd.refine(pilot)
    # The control group answers the pilot's survey, from which the effect of the narrower range is estimated.
    stop = 8000 + int(control * 32_000)
    groups = [(order[8000:stop], survey), (order[stop:], following)]
    later = [simulate_tally(pa.table({"delay": own}), asked, seed=seed) for own, asked in groups if own.size]
    two.append(hd.combine([pilot, *later]).value[0])

# %%
figure = Figure(figsize=(6.4, 3.2), layout="constrained")
axes = figure.subplots()
for place, (name, values) in enumerate((("one round", one), ("two rounds", two))):
    axes.plot(
        values, np.full(len(values), place) + rng.uniform(-0.1, 0.1, len(values)), "o", alpha=0.7, label=name
    )
axes.axvline(delays.mean(), color="k", ls="--", label="true mean")
axes.set_yticks([0, 1], ["one round", "two rounds"])
axes.set(xlabel="estimated mean delay (minutes), eight collections each", ylim=(-0.6, 1.6))
axes.legend(frameon=False, fontsize=8)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "two_rounds.png", dpi=100)
