"""Laws for few reports, where the normal law does not carry."""

from __future__ import annotations

from hdr4me.framework.small_samples.counts import (
    Counts,
    bernstein_within,
    normal_within,
    tolerance_within,
    within_few,
)
from hdr4me.framework.small_samples.intervals import (
    category_interval,
    noise_reach,
    share_interval,
    skew_size,
    widest_variance,
)
from hdr4me.framework.small_samples.weighted import above_zero, ratio_interval, weighted_interval

__all__ = [
    "Counts",
    "above_zero",
    "bernstein_within",
    "category_interval",
    "noise_reach",
    "normal_within",
    "ratio_interval",
    "share_interval",
    "skew_size",
    "tolerance_within",
    "weighted_interval",
    "widest_variance",
    "within_few",
]
