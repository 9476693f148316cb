"""Which mechanism is best on my data? The predicted and the simulated error of each mechanism."""

# %%
import sys

from sklearn.datasets import load_wine

import hdr4me as hd

# %% The data are public, so the ranges may be taken from them.
wine = load_wine(as_frame=True).frame[["alcohol", "hue", "proline", "flavanoids"]]
found = hd.compare(wine, epsilon=[0.5, 1.0, 2.0, 4.0], users=10_000, repeats=6, recalibrate=False, seed=1)
figure = found.plot()

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "which_mechanism.png", dpi=100)
