"""Channels for categories: which there are, and which of them a survey uses unless told."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.channel import MAX_FIELDS, Field
from hdr4me.channels.heavy_set import heaviest
from hdr4me.channels.oracles import oracle, subset_size
from hdr4me.channels.projective import MAX_POINTS, n_points
from hdr4me.channels.projective.design import best_space, projective, space_oracle
from hdr4me.channels.proof import BITS, check_epsilon, exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.table import CategoryTable, EntryTable, Table

LONG = 64
"""Bytes of a report above which a shorter one is looked for: every report of a survey is padded to the longest."""
NEARLY = 1.2  # how many times the least error a shorter report may have

_TOTAL = 1 << BITS


def categorical_choice(epsilon: float, n_categories: int) -> str:
    """The oracle that a survey uses: least error, unless its reports are long and shorter ones nearly as good.

    No oracle has a smaller expected error than subset selection, which is GRR where sets of one are best. Its reports
    have one number for each category of the set, and each of them is sent and counted; above `LONG` bytes a projective
    report is taken if its expected error is at most `NEARLY` times as large. That is one number to send and to count,
    and counts of any size are decoded once, in about a second for a million categories.

    >>> [categorical_choice(1.0, v) for v in (4, 10, 4043)]
    ['grr', 'subset', 'projective']
    """
    return _choice(float(epsilon), n_categories)[0]


def categorical_reason(epsilon: float, n_categories: int) -> str:
    """Why `categorical_choice` chooses what it chooses.

    >>> categorical_reason(1.0, 4043)
    "one number of 2 bytes to send and count, not subset selection's 1,087 (2,174 bytes), at 1.003 times its error"
    """
    return _choice(float(epsilon), n_categories)[1]


@lru_cache(maxsize=256)
def _choice(epsilon: float, n_categories: int) -> tuple[str, str]:
    check_epsilon(epsilon)
    size = subset_size(epsilon, n_categories)
    if size == 1:
        return "grr", "least expected error: sets of one category are best here"
    sent = size * Field(n_categories).size
    if sent > LONG:
        space = best_space(epsilon, n_categories)
        ratio = (
            space_oracle(epsilon, n_categories, *space).total / oracle("subset", epsilon, n_categories).total
        )
        if ratio <= NEARLY:
            return "projective", (
                f"one number of {Field(n_points(*space)).size} bytes to send and count, not subset selection's "
                f"{size:,} ({sent:,} bytes), at {ratio:.3f} times its error"
            )
    return "subset", f"least expected error, with sets of {size:,} categories in {sent:,} bytes"


def categorical_channel(name: str, epsilon: float, n_categories: int, base: str = "optimal") -> Channel:
    """The channel called `name` for a dimension with this many categories."""
    own = {"grr": response, "subset": subset_selection, "projective": projective}
    if name in own:
        return own[name](epsilon, n_categories)
    return (oue(epsilon) if name == "oue" else histogram(epsilon, base)).channel(n_categories)


@lru_cache(maxsize=4096)
def categorical_fits(name: str, epsilon: float, n_categories: int) -> bool:
    """Whether there is a channel called `name` for so many categories: each kind has limits of its own.

    Unary and histogram encoding have an entry, and subset selection a field, for at most 65,536 categories; the weights
    of randomised response are whole numbers, which cannot express a small budget for very many categories.

    >>> [categorical_fits(name, 0.5, 100_000) for name in ("projective", "subset", "grr", "oue", "histogram")]
    [True, True, False, False, False]
    """
    if name == "auto":
        name = categorical_choice(epsilon, n_categories)
    if name in ("oue", "histogram"):
        return n_categories <= MAX_FIELDS
    if name == "projective":
        return n_categories <= MAX_POINTS // 2
    size = subset_size(epsilon, n_categories) if name == "subset" else 1
    if size > 1:
        return size <= MAX_FIELDS
    try:
        return response(epsilon, n_categories).epsilon == epsilon
    except InvalidInput:
        return False


def subset_selection(epsilon: float, n_categories: int) -> HeavySet:
    """Subset selection with sets of the best size (Ye and Barg 2018); sets of one are GRR.

    >>> channel = subset_selection(1.0, 10)
    >>> channel.mechanism, channel.per_report
    ('subset', 3)
    """
    check_epsilon(epsilon)
    size = subset_size(epsilon, n_categories)
    if size == 1:
        return response(epsilon, n_categories)
    if size > MAX_FIELDS:
        raise InvalidInput(
            f"subset selection over {n_categories:,} categories at epsilon = {epsilon:g} would send {size:,} of them "
            f"in each report, and at most {MAX_FIELDS:,} are allowed: use 'projective' or 'auto'"
        )
    family = Subset(n_categories, size)
    return HeavySet("subset", float(epsilon), family, heaviest(epsilon, family))


def response(epsilon: float, n_categories: int) -> HeavySet:
    """Generalised randomised response for any number of categories, with whole weights for every category.

    >>> response(1.0, 4).weight
    2041685230
    """
    same, _ = _response_weights(epsilon, n_categories)
    return HeavySet("grr", float(epsilon), Subset(n_categories, 1), same)


def _response_weights(epsilon: float, n_categories: int) -> tuple[int, int]:
    """The weights A of the true category and B of each other one.

    With r ≤ e^ε rational, B = ⌈2^32 / (r + v − 1)⌉ and A = 2^32 − (v − 1)·B, so that
    A = 2^32 − (v−1)·B ≤ (r + v − 1)·B − (v−1)·B = r·B: the ratio A/B is at most r ≤ e^ε.
    """
    check_epsilon(epsilon)
    other = math.ceil(_TOTAL / (exp_lower(epsilon) + n_categories - 1))
    same = _TOTAL - (n_categories - 1) * other
    if same <= other:
        raise InvalidInput(
            f"epsilon = {epsilon} is not allowed: {BITS} bits cannot express it for {n_categories} categories"
        )
    return same, other


def grr(epsilon: float, n_categories: int) -> Table:
    """Generalised randomised response as a table, for up to 256 categories; `response` is what surveys use.

    With p = A/2^32 and q = B/2^32 a report equal to k counts (1−q)/(p−q) for the frequency of k and any other
    −q/(p−q): unbiased.

    >>> table = grr(1.0, 4)
    >>> table.weights[0].tolist()
    [2041685230, 751094022, 751094022, 751094022]
    """
    if not 2 <= n_categories <= MAX_CELLS:
        raise InvalidInput(f"n_categories = {n_categories} is not allowed: it must be 2 to {MAX_CELLS}")
    same, other = _response_weights(epsilon, n_categories)
    weights = np.full((n_categories, n_categories), other, dtype=np.int64)
    np.fill_diagonal(weights, same)
    decode = np.array([(_TOTAL - other) / (same - other), -other / (same - other)])
    return CategoryTable("grr", epsilon, np.arange(n_categories, dtype=np.float64), decode, weights)


def oue(epsilon: float) -> Table:
    """Optimised unary encoding: a present entry is sent as 1 with probability 1/2, an absent one with q.

    q = ⌈2^32 / (r + 1)⌉ / 2^32 with r ≤ e^ε rational. Two inputs differ in two entries, whose ratios multiply:
    (1/2)/q · (1−q)/(1/2) = (1−q)/q ≤ r ≤ e^ε.

    >>> oue(1.0).weights.tolist()
    [[3139872686, 1155094610], [2147483648, 2147483648]]
    """
    check_epsilon(epsilon)
    half = _TOTAL // 2
    sent = math.ceil(_TOTAL / (exp_lower(epsilon) + 1))
    if sent >= half:
        raise InvalidInput(f"epsilon = {epsilon} is not allowed: {BITS} bits cannot express it")
    weights = np.array([[_TOTAL - sent, sent], [half, half]])
    decode = np.array([-sent / (half - sent), (_TOTAL - sent) / (half - sent)])
    return EntryTable("oue", epsilon, np.array([0.0, 1.0]), decode, weights)


def histogram(epsilon: float, base: str = "optimal") -> Table:
    """The paper's histogram encoding: every entry of the one-hot vector under ε/2, by the mechanism `base`.

    An absent entry is −1 and a present one +1 for that mechanism's exact table (entries 0 and 1 used as they are
    would triple Piecewise's error); only its two outermost rows are needed. A report d counts for (d + 1)/2. Two
    entries change between two inputs, so ε/2 each makes ε together.

    >>> histogram(1.0, "duchi").weights.tolist()
    [[2673442470, 1621524826], [1621524826, 2673442470]]
    """
    check_epsilon(epsilon)
    table = mechanism(base, epsilon=epsilon / 2).exact()
    name, decode = f"histogram-{base}", (table.decode + 1.0) / 2.0
    return EntryTable(name, epsilon, np.array([0.0, 1.0]), decode, table.weights[[0, -1]])
