"""JSON lines of reports in their canonical form, to and from rows; any other line is left to the general reader.

A canonical line is what the writer of this package writes: a fixed prefix, one list `[question,field,...]` for each
answer, and `]}` at its end, without blanks, signs or leading zeros.
"""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.jit import kernel

__all__ = ["format_lines", "parse_lines"]

_COMMA, _OPEN, _CLOSE, _END, _FEED, _ZERO = 44, 91, 93, 125, 10, 48


@kernel()
def _number(data, at, end):  # type: ignore[no-untyped-def]
    """The number that begins at `at`, and where it ends; −1 if there is none in canonical form below 10^18."""
    value, start = np.int64(0), at
    while at < end and at - start < 18 and 0 <= np.int64(data[at]) - _ZERO <= 9:
        value = value * 10 + np.int64(data[at]) - _ZERO
        at += 1
    if (
        at == start
        or (at - start > 1 and data[start] == _ZERO)
        or (at < end and 0 <= np.int64(data[at]) - _ZERO <= 9)
    ):
        return np.int64(-1), at
    return value, at


@kernel()
def _answers(data, at, n_sampled, slot_size, n_fields, sizes, bounds, rising, row):  # type: ignore[no-untyped-def]
    """Write the answers that begin at `at` to `row`; where their line feed stands, or −1 unless all is canonical.

    The last byte of `data` is a line feed, so every comparison below ends inside.
    """
    end = data.size
    previous = np.int64(-1)
    for s in range(n_sampled):
        if data[at] != _OPEN:
            return -1
        question, at = _number(data, at + 1, end)
        if question <= previous or question >= n_fields.size:
            return -1
        previous = question
        place = s * slot_size
        row[place], row[place + 1] = question & 255, question >> 8
        place += 2
        before = np.int64(-1)
        for _ in range(n_fields[question]):
            if data[at] != _COMMA:
                return -1
            value, at = _number(data, at + 1, end)
            if value < 0 or value >= bounds[question] or (rising[question] and value <= before):
                return -1
            before = value
            for byte in range(sizes[question]):
                row[place] = (value >> (8 * byte)) & 255
                place += 1
        if data[at] != _CLOSE:
            return -1
        at += 1
        if s + 1 < n_sampled:
            if data[at] != _COMMA:
                return -1
            at += 1
    if at + 2 >= end or data[at] != _CLOSE or data[at + 1] != _END or data[at + 2] != _FEED:
        return -1
    return at + 2


@kernel()
def parse_lines(data, prefix, n_sampled, slot_size, n_fields, sizes, bounds, rising, starts, rows, good):  # type: ignore[no-untyped-def]
    """Parse the lines of `data`, each ended by a line feed, into zeroed `rows`; returns how many lines there are.

    If there are more lines than `rows` has room for, −1 is returned.

    Line i stands at data[starts[i] : starts[i + 1] - 1]; good[i] says whether rows[i] holds its report. `n_fields`,
    `sizes` (bytes of a field), `bounds` and `rising` (fields must increase) are by question. The search for the next
    line feed is needed only for lines that are not canonical.
    """
    n, start = 0, 0
    while start < data.size:
        if n == good.size:
            return -1
        feed = -1
        if start + prefix.size < data.size:
            differ = np.uint8(0)
            for i in range(prefix.size):  # no early end: so the compiler compares many bytes at once
                differ |= data[np.uint64(start + i)] ^ prefix[np.uint64(i)]
            if differ == 0:
                at = start + prefix.size
                feed = _answers(data, at, n_sampled, slot_size, n_fields, sizes, bounds, rising, rows[n])
        good[n] = feed >= 0
        if feed < 0:
            feed = start
            while data[feed] != _FEED:
                feed += 1
        starts[n] = start
        n += 1
        start = feed + 1
    starts[n] = start
    return n


@kernel()
def _write(value, out, at):  # type: ignore[no-untyped-def]
    """The digits of a number at out[at:]; where they end."""
    digits = 1
    rest = value
    while rest >= 10:
        rest //= 10
        digits += 1
    for i in range(digits):
        out[at + digits - 1 - i] = _ZERO + value % 10
        value //= 10
    return at + digits


@kernel()
def format_lines(rows, prefix, n_sampled, slot_size, n_fields, sizes, out):  # type: ignore[no-untyped-def]
    """Write reports as canonical lines to `out`, which has room for the longest; returns how many bytes they take."""
    at = 0
    for r in range(rows.shape[0]):
        for i in range(prefix.size):
            out[at + i] = prefix[i]
        at += prefix.size
        for s in range(n_sampled):
            place = s * slot_size
            question = np.int64(rows[r, place]) | np.int64(rows[r, place + 1]) << 8
            place += 2
            out[at] = _OPEN
            at = _write(question, out, at + 1)
            for _ in range(n_fields[question]):
                value = np.int64(0)
                for byte in range(sizes[question]):
                    value |= np.int64(rows[r, place]) << (8 * byte)
                    place += 1
                out[at] = _COMMA
                at = _write(value, out, at + 1)
            out[at] = _CLOSE
            out[at + 1] = _COMMA
            at += 2
        out[at - 1] = _CLOSE
        out[at] = _END
        out[at + 1] = _FEED
        at += 2
    return at
