"""Channels for categories, and the one that a survey uses by default."""

from __future__ import annotations

import math
from functools import lru_cache

from hdr4me.channels import Channel, KSubset, UnaryEncoding
from hdr4me.channels.channel import MAX_FIELDS, Field
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.oracles import best_space, oracle, projective, space_oracle, subset_size
from hdr4me.channels.projective import MAX_POINTS, n_points
from hdr4me.channels.proof import BITS, ONE, check_epsilon, exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism

# Bytes above which a shorter report is considered: every report of a survey is padded to the longest one.
LONG = 64
# The largest error of a shorter report, as a multiple of the least error. The exact value matters little: the ratio is
# at most 1.03 if a space of about the right size exists, and 1.22 to 6 if 300,000 categories or more need too large a
# space.
NEARLY = 1.2


def categorical_choice(epsilon: float, category_count: int) -> str:
    """The frequency oracle that a survey uses: the one of least error, unless its reports are long.

    No oracle has a smaller expected error than subset selection, which is GRR if sets of one category are best. If its
    reports exceed `LONG` bytes and a projective report, which is one number, has at most `NEARLY` times its error, the
    projective report is used.
    """
    return _choice(float(epsilon), category_count)[0]


def categorical_reason(epsilon: float, category_count: int) -> str:
    """The reason for the choice of `categorical_choice`."""
    return _choice(float(epsilon), category_count)[1]


@lru_cache(maxsize=256)
def _choice(epsilon: float, category_count: int) -> tuple[str, str]:
    check_epsilon(epsilon)
    size = subset_size(epsilon, category_count)
    if size == 1:
        return "grr", "least expected error of all frequency oracles"
    sent = size * Field(category_count).size
    if sent > LONG:
        space = best_space(epsilon, category_count)
        ratio = space_oracle(epsilon, category_count, *space).total
        ratio /= oracle("subset", epsilon, category_count).total
        if ratio <= NEARLY:
            return "projective", (
                f"one number of {Field(n_points(*space)).size} bytes instead of the {size:,} numbers ({sent:,} bytes) "
                f"of subset selection, with {ratio:.3f} times its error"
            )
    return "subset", f"least expected error; a report is a set of {size:,} categories in {sent:,} bytes"


def categorical_channel(name: str, epsilon: float, category_count: int, base: str = "optimal") -> Channel:
    """The channel called `name` for a dimension with this many categories."""
    if name == "histogram":
        return histogram(epsilon, category_count, base)
    own = {"grr": response, "subset": subset_selection, "projective": projective, "oue": oue}
    return own[name](epsilon, category_count)


@lru_cache(maxsize=4096)
def categorical_fits(name: str, epsilon: float, category_count: int) -> bool:
    """Whether there is a channel called `name` for this many categories; each kind has its own limits."""
    if name == "auto":
        name = categorical_choice(epsilon, category_count)
    if name in ("oue", "histogram"):
        return category_count <= MAX_FIELDS
    if name == "projective":
        return category_count <= MAX_POINTS // 2
    size = subset_size(epsilon, category_count) if name == "subset" else 1
    if size > 1:
        return size <= MAX_FIELDS
    try:
        return response(epsilon, category_count).epsilon == epsilon
    except InvalidInput:
        return False


def subset_selection(epsilon: float, category_count: int) -> KSubset:
    """Subset selection with sets of the best size (Ye and Barg 2018); with sets of one category it is GRR."""
    check_epsilon(epsilon)
    size = subset_size(epsilon, category_count)
    if size == 1:
        return response(epsilon, category_count)
    if size > MAX_FIELDS:
        raise InvalidInput(
            f"subset selection over {category_count:,} categories at epsilon = {epsilon:g} would send {size:,} of them "
            f"in each report, and at most {MAX_FIELDS:,} are allowed: use 'projective' or 'auto'"
        )
    family = Subset(category_count, size)
    return KSubset("subset", float(epsilon), family, heaviest(epsilon, family))


def response(epsilon: float, category_count: int) -> KSubset:
    """Generalized randomized response for any number of categories, with integer weights.

    With r ≤ e^ε rational, the weight of each other category is B = ⌈2^32 / (r + v − 1)⌉ and that of the true one
    A = 2^32 − (v − 1)·B ≤ (r + v − 1)·B − (v−1)·B = r·B: the ratio A/B is at most r ≤ e^ε.
    """
    check_epsilon(epsilon)
    other = math.ceil(ONE / (exp_lower(epsilon) + category_count - 1))
    same = ONE - (category_count - 1) * other
    if same <= other:
        reason = f"{BITS} bits cannot express it for {category_count} categories"
        raise InvalidInput.of("epsilon", epsilon, reason)
    return KSubset("grr", float(epsilon), Subset(category_count, 1), same)


def oue(epsilon: float, category_count: int) -> UnaryEncoding:
    """Optimized unary encoding: a present entry is sent as 1 with probability 1/2, an absent one with q.

    q = ⌈2^32 / (r + 1)⌉ / 2^32 with r ≤ e^ε rational. Two inputs differ in two entries, whose ratios multiply:
    (1/2)/q · (1−q)/(1/2) = (1−q)/q ≤ r ≤ e^ε.
    """
    check_epsilon(epsilon)
    half = ONE // 2
    sent = math.ceil(ONE / (exp_lower(epsilon) + 1))
    if sent >= half:
        raise InvalidInput(f"epsilon = {epsilon} is not allowed: {BITS} bits cannot express it")
    decode = -sent / (half - sent), (ONE - sent) / (half - sent)
    return UnaryEncoding("oue", float(epsilon), category_count, decode, ((ONE - sent, sent), (half, half)))


def histogram(epsilon: float, category_count: int, base: str = "optimal") -> UnaryEncoding:
    """The paper's histogram encoding: every entry of the one-hot vector is perturbed by `base` under ε/2.

    An absent entry is −1 and a present one +1, so that only the first and the last row of the exact table of `base` are
    needed. A report d is decoded as (d + 1)/2. Two inputs differ in two entries, each under ε/2, which gives ε in all.
    """
    check_epsilon(epsilon)
    table = mechanism(base, epsilon=epsilon / 2).exact()
    rows = tuple(map(tuple, table.weights[[0, -1]].tolist()))
    decode = tuple(((table.decode + 1.0) / 2.0).tolist())
    return UnaryEncoding(f"histogram-{base}", float(epsilon), category_count, decode, rows)
