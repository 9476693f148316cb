"""What if users report every day? The accuracy of guessing a yes/no attribute, with fresh and memoized noise."""

# %%
import sys

from matplotlib.figure import Figure

from hdr4me.accounting.repeated import guessed

# %% Fresh noise averages out; memoized responses stay the same.
days = list(range(1, 61))
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.subplots()
for epsilon, color in ((0.5, "#0b6e99"), (1.0, "#d1495b")):
    axes.plot(
        days, [100 * guessed(epsilon, t) for t in days], color=color, label=f"fresh noise, ε = {epsilon:g}"
    )
    axes.axhline(
        100 * guessed(epsilon, 1), color=color, ls="--", label=f"memoized responses, ε = {epsilon:g}"
    )
axes.set(xlabel="days", ylabel="correct guesses (%)", ylim=(50, 101))
axes.legend(frameon=False, fontsize=8)

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "repeated_collection.png", dpi=100)
