"""How many users are needed? The number of users for a tolerance, by the number of dimensions."""

# %%
import sys

from matplotlib.figure import Figure

import hdr4me as hd

# %% Omit the number of users and give a tolerance: the planner finds the number of users.
dimensions = [1, 5, 20, 50]
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
for tolerance in (0.2, 0.1, 0.05):
    users = [hd.plan(dims=d, epsilon=1.0, tolerance=tolerance).best.users for d in dimensions]
    axes.plot(dimensions, users, "o-", label=f"all within ±{tolerance:g}")
axes.set(xscale="log", yscale="log", xlabel="dimensions", ylabel="users needed, ε = 1, 95 %")
axes.set_xticks(dimensions, [str(d) for d in dimensions])
axes.minorticks_off()
axes.legend(frameon=False)
axes.grid(alpha=0.25)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "how_many_users.png", dpi=100)
