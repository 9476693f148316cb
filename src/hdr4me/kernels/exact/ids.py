"""Sorted ids of 16 bytes, each as two numbers of 64 bits: merged, and searched for other sorted ids."""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.jit import kernel


@kernel()
def merge(high_a, low_a, owner_a, high_b, low_b, owner_b, high, low, owner):  # type: ignore[no-untyped-def]
    """Merge the sorted ids a and b and their owners into `high`, `low` and `owner`, which fit both."""
    i, j, k = 0, 0, 0
    n, m = high_a.size, high_b.size
    # Both are loaded and one is selected: a branch would be mispredicted half of the time.
    while i < n and j < m:
        a, b = high_a[i], high_b[j]
        la, lb = low_a[i], low_b[j]
        first = (a < b) | ((a == b) & (la <= lb))
        high[k] = a if first else b
        low[k] = la if first else lb
        owner[k] = owner_a[i] if first else owner_b[j]
        i += first
        j += not first
        k += 1
    high[k : k + n - i], low[k : k + n - i], owner[k : k + n - i] = high_a[i:], low_a[i:], owner_a[i:]
    k += n - i
    high[k:], low[k:], owner[k:] = high_b[j:], low_b[j:], owner_b[j:]


@kernel()
def mark_known(high, low, wanted_high, wanted_low, found):  # type: ignore[no-untyped-def]
    """Set found[i] if the sorted ids hold the i-th wanted id; the wanted ids are sorted too.

    The search for an id begins where the previous one ended: steps of doubling length, then a binary search. Ids that
    an attacker chose cost at most 2 log2(n) comparisons each.
    """
    n, at = high.size, 0
    for i in range(wanted_high.size):
        h, l = wanted_high[i], wanted_low[i]
        step, first, last = 1, at, at
        while last < n and (high[last] < h or (high[last] == h and low[last] < l)):
            first = last + 1
            last += step
            step *= 2
        last = min(last, n)
        while first < last:
            middle = (first + last) >> 1
            if high[middle] < h or (high[middle] == h and low[middle] < l):
                first = middle + 1
            else:
                last = middle
        at = first
        if at < n and high[at] == h and low[at] == l:
            found[i] = True


@kernel()
def set_bits(bits, shift, high):  # type: ignore[no-untyped-def]
    """Set bit number high >> shift for each id."""
    for i in range(high.size):
        place = high[i] >> shift
        bits[place >> np.uint64(3)] |= np.uint8(1 << (place & np.uint64(7)))


@kernel()
def mark_set(bits, shift, high, found):  # type: ignore[no-untyped-def]
    """Set found[i] if the bit of the i-th id is set: an id whose bit is not set was never added."""
    for i in range(high.size):
        place = high[i] >> shift
        found[i] = (bits[place >> np.uint64(3)] >> (place & np.uint64(7))) & np.uint64(1) != 0


def warm() -> None:
    """Compile all functions, so that the first upload does not wait for the compiler."""
    one = np.zeros(1, np.uint64)
    owner, two = np.zeros(1, np.uint32), np.zeros((2, 2), np.uint64)
    merge(one, one, owner, one, one, owner, *two, np.zeros(2, np.uint32))
    mark_known(one, one, one, one, np.zeros(1, bool))
    set_bits(np.zeros(8, np.uint8), np.uint64(58), one)
    mark_set(np.zeros(8, np.uint8), np.uint64(58), one, np.zeros(1, bool))
