"""Channels for blocks of numbers that are asked together, and the block with the smallest error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import stats

from hdr4me.channels import KSubset
from hdr4me.channels.agreement.channel import MAX_SIZE, Agreement
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput


@lru_cache(maxsize=4096)
def agreement_channel(epsilon: float, size: int) -> KSubset:
    """The channel for blocks of `size` signs with the largest contrast c over the numbers of agreeing positions."""
    check_epsilon(epsilon)
    if type(size) is not int or not 2 <= size <= MAX_SIZE:
        raise InvalidInput.of("size", size, f"an integer from 2 to {MAX_SIZE}")
    family = Agreement(size, _best(float(epsilon), size)[1])
    return KSubset("agreement", float(epsilon), family, heaviest(epsilon, family))


@lru_cache(maxsize=65536)
def _best(epsilon: float, size: int) -> tuple[float, int]:
    """The largest contrast over the numbers τ of agreeing positions, as a float, and that τ.

    With K = P(Bin(b, ½) ≥ τ) and A = ½·P(Bin(b − 1, ½) ≥ τ − 1), the part of K in which a given position agrees:
    P(agree) = p·A/K + (1 − p)·(½ − A)/(1 − K), p = e^ε·K/(e^ε·K + 1 − K).
    """
    τ = np.arange(size // 2 + 1, size + 1)
    heavy, inside = stats.binom.sf(τ - 1, size, 0.5), stats.binom.sf(τ - 2, size - 1, 0.5) / 2
    p = 1 / (1 + np.exp(-epsilon) * (1 - heavy) / np.maximum(heavy, 1e-300))
    agree = p * inside / np.maximum(heavy, 1e-300) + (1 - p) * (0.5 - inside) / (1 - heavy)
    agree[heavy * np.exp(epsilon) < 2.0**-30] = 0.0  # too improbable for a weight of 32 bits
    k = int(agree.argmax())
    return float(2 * agree[k] - 1), int(τ[k])


def quick_second_moment(epsilon: float, size: int) -> float:
    """1/c², the mean square of a decoded sign, to about nine digits and without constructing the channel.

    With d numbers in blocks of b, each user answering one block, n·MSE = (d/b)/c² − E t².
    """
    return _best(float(epsilon), size)[0] ** -2


def block_sizes(dims: int, size: int) -> list[int]:
    """The sizes of the blocks for `dims` numbers, as equal as possible and at most `size`."""
    n_blocks = -(-dims // size)
    least, more = divmod(dims, n_blocks)
    return [least + 1] * more + [least] * (n_blocks - more)
