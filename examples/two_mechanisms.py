"""How do two new mechanisms compare with Piecewise on MY data? Figure 4 of the paper for 569 tumor measurements."""

# %%
import sys
from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer

import hdr4me as hd


# %% A report is −C or C plus uniform noise; `parts` returns weights, offsets from the mean and half-widths.
class Coin(hd.UniformMixture):
    def __init__(self, epsilon, width=0.0):
        self.epsilon, self.c, self.width = epsilon, 1 / np.tanh(epsilon / 2), width

    def parts(self, t):
        weight = np.stack([1 + t / self.c, 1 - t / self.c]) / 2
        return hd.Parts(weight, np.stack([self.c - t, -self.c - t]), np.full_like(weight, self.width))

    bound, name = property(lambda self: self.c + self.width), "coin"


# %%
hd.register_mechanism("coin", Coin, planned=False)
hd.register_mechanism("blurred_coin", partial(Coin, width=0.9), planned=False)
found = hd.study(load_breast_cancer().data, ["piecewise", "coin", "blurred_coin"], [10, 20, 40, 80])
figure = found.plot()

# %%
if __name__ == "__main__":
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "two_mechanisms.png", dpi=100)
