"""Which ε? The predicted error of 50 means, by the privacy budget of a report."""

# %%
import sys

from matplotlib.figure import Figure

import hdr4me as hd

# %% The plan ranks all mechanisms and predicts their errors. It needs no data.
budgets = [0.25, 0.5, 1.0, 2.0, 4.0]
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
for users in (10_000, 100_000, 1_000_000):
    errors = [hd.plan(users=users, dims=50, epsilon=budget).best.tolerance_joint for budget in budgets]
    axes.plot(budgets, errors, "o-", label=f"{users:,} users")
axes.axhline(1.0, color="gray", ls=":", label="half of the range")
axes.set(xscale="log", yscale="log", xlabel="ε of a report", ylabel="95 % error of all 50 means")
axes.set_xticks(budgets, [f"{x:g}" for x in budgets])
axes.minorticks_off()
axes.legend(frameon=False, fontsize=8)
axes.grid(alpha=0.25)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "which_epsilon.png", dpi=100)
