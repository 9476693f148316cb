"""JSON lines of reports in their canonical form, to and from rows; any other line is left to the general reader.

A canonical line is what the writer of this package writes: a fixed prefix, one list `[question,field,...]` for each
answer, and `]}` at its end, without blanks, signs or leading zeros.
"""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.intrinsics import eight_bytes, one_byte, put_byte, same_32, trailing_zeros
from hdr4me.kernels.machine.jit import kernel

_COMMA, _OPEN, _CLOSE, _END, _FEED, _ZERO = (np.uint64(ord(sign)) for sign in ",[]}\n0")
_0, _1, _2, _3, _7, _8, _10, _16, _18, _32 = map(np.uint64, (0, 1, 2, 3, 7, 8, 10, 16, 18, 32))
_56, _64, _255 = map(np.uint64, (56, 64, 255))

_ZEROS, _TO_128, _TOPS = (np.uint64(byte * 0x0101010101010101) for byte in (48, 128 - 10, 128))
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_JOIN_ONES, _JOIN_PAIRS, _JOIN_FOURS = (
    np.uint64(1 + (ten << bits)) for ten, bits in ((10, 8), (100, 16), (10000, 32))
)

_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)  # larger than any value: no number, or no line feed

# The functions that are called for every line take addresses and no arrays: numba would count the references to an
# array at each call, which takes longer than a line. All of their integers are uint64.


@kernel()
def _long_number(at, end):  # type: ignore[no-untyped-def]
    """The number that begins at `at`, and its end; `_NONE` if it is not in canonical form below 10^18."""
    value, start = _0, at
    while at < end and at - start < _18 and one_byte(at) - _ZERO < _10:
        value = value * _10 + (one_byte(at) - _ZERO)
        at += _1
    zero_first = at - start > _1 and one_byte(start) == _ZERO
    too_long = at < end and one_byte(at) - _ZERO < _10
    return (_NONE if at == start or zero_first or too_long else value), at


@kernel(inline="always")
def _number(at, end):  # type: ignore[no-untyped-def]
    """As `_long_number`; up to seven digits are read at once, without a branch for each, if eight bytes are available.

    After XOR with "0", a byte is a digit if it is below 10. Adding 118 sets the top bit of every other byte up to 137;
    larger bytes have it already, and carries only affect later bytes. The lowest top bit is therefore at the end of the
    digits. The digits are moved to the end of the word, with zeros before them, and combined into pairs, fours and
    eight.
    """
    if at + _8 > end:
        return _long_number(at, end)
    digits = eight_bytes(at) ^ _ZEROS
    others = ((digits + _TO_128) | digits) & _TOPS
    bits = trailing_zeros(others) & ~_7
    if (bits == _0) | (bits > _56) | ((bits > _8) & (digits & _255 == _0)):  # one branch, rarely taken
        return _long_number(at, end)
    digits <<= _64 - bits
    digits = (digits * _JOIN_ONES >> _8) & _PAIRS
    digits = (digits * _JOIN_PAIRS >> _16) & _FOURS
    return digits * _JOIN_FOURS >> _32, at + (bits >> _3)


@kernel(inline="always")
def _answers(at, end, sampled, slot_size, n_questions, n_fields, sizes, bounds, rising, row):  # type: ignore[no-untyped-def]
    """Write the answers at `at` to `row`; returns the position of their line feed, `_NONE` unless all are canonical.

    The last byte before `end` is a line feed, so every comparison below ends inside.
    """
    least = _0
    for s in range(sampled):
        if s != _0:
            if one_byte(at) != _COMMA:
                return _NONE
            at += _1
        if one_byte(at) != _OPEN:
            return _NONE
        question, at = _number(at + _1, end)
        if question < least or question >= n_questions:
            return _NONE
        least = question + _1
        here = row + s * slot_size
        put_byte(here, question)
        put_byte(here + _1, question >> _8)
        here += _2
        entry = question << _3
        bound, size = eight_bytes(bounds + entry), eight_bytes(sizes + entry)
        rises = eight_bytes(rising + entry)
        lowest = _0
        for _ in range(eight_bytes(n_fields + entry)):
            if one_byte(at) != _COMMA:
                return _NONE
            value, at = _number(at + _1, end)
            if value < lowest or value >= bound:
                return _NONE
            if rises != _0:
                lowest = value + _1
            for byte in range(size):
                put_byte(here + byte, value >> (_8 * byte))
            here += size
        if one_byte(at) != _CLOSE:
            return _NONE
        at += _1
    if at + _2 >= end or one_byte(at) != _CLOSE or one_byte(at + _1) != _END or one_byte(at + _2) != _FEED:
        return _NONE
    return at + _2


@kernel(inline="always")
def _begins(at, prefix, size):  # type: ignore[no-untyped-def]
    """Whether the line at `at` begins with the prefix of 32 or more bytes."""
    for i in range(_0, size - _32, _32):
        if not same_32(at + i, prefix + i):
            return False
    return same_32(at + size - _32, prefix + size - _32)


@kernel()
def parse_lines(data, prefix, sampled, slot_size, n_fields, sizes, bounds, rising, places, rows, good):  # type: ignore[no-untyped-def]
    """Parse the lines of `data`, each ended by a line feed, into zeroed `rows`; returns the number of lines.

    If there are more lines than `rows`, −1 is returned.

    good[i] is true if rows[i] holds the report of line i. Otherwise the line and its line feed are data[places[i, 0] :
    places[i, 1]]. `n_fields`, `sizes` (bytes of a field), `bounds` and `rising` (fields must increase) are by question,
    int64. The prefix has 32 bytes or more.
    """
    first, pattern = np.uint64(data.ctypes.data), np.uint64(prefix.ctypes.data)
    row = np.uint64(rows.ctypes.data)
    fields, widths = np.uint64(n_fields.ctypes.data), np.uint64(sizes.ctypes.data)
    limits, rises = np.uint64(bounds.ctypes.data), np.uint64(rising.ctypes.data)
    end, skip, n_questions = first + np.uint64(data.size), np.uint64(prefix.size), np.uint64(n_fields.size)
    slots, slot, width = np.uint64(sampled), np.uint64(slot_size), np.uint64(sampled * slot_size)
    n, start = 0, first
    while start < end:
        if n == good.size:
            return -1
        feed = _NONE
        if start + skip < end and _begins(start, pattern, skip):
            at = start + skip
            feed = _answers(at, end, slots, slot, n_questions, fields, widths, limits, rises, row)
        good[n] = feed != _NONE
        if feed == _NONE:
            feed = start
            while one_byte(feed) != _FEED:
                feed += _1
            places[n, 0], places[n, 1] = np.int64(start - first), np.int64(feed - first) + 1
        n += 1
        row += width
        start = feed + _1
    return n


@kernel()
def _write(value, at):  # type: ignore[no-untyped-def]
    """Write the digits of a number to an address; returns their end."""
    digits = _1
    rest = value
    while rest >= _10:
        rest //= _10
        digits += _1
    for i in range(digits):
        put_byte(at + digits - _1 - i, _ZERO + value % _10)
        value //= _10
    return at + digits


@kernel()
def format_lines(rows, prefix, sampled, slot_size, n_fields, sizes, out):  # type: ignore[no-untyped-def]
    """Write reports as canonical lines to `out`, which fits the longest; returns the number of bytes written."""
    first = np.uint64(out.ctypes.data)
    at = first
    for r in range(rows.shape[0]):
        free = out[np.int64(at - first) :]
        for i in range(prefix.size):
            free[i] = prefix[i]
        at += np.uint64(prefix.size)
        for s in range(sampled):
            place = s * slot_size
            question = np.int64(rows[r, place]) | np.int64(rows[r, place + 1]) << 8
            place += 2
            put_byte(at, _OPEN)
            at = _write(np.uint64(question), at + _1)
            for _ in range(n_fields[question]):
                value = _0
                for byte in range(sizes[question]):
                    value |= np.uint64(rows[r, place]) << np.uint64(8 * byte)
                    place += 1
                put_byte(at, _COMMA)
                at = _write(value, at + _1)
            put_byte(at, _CLOSE)
            put_byte(at + _1, _COMMA)
            at += _2
        put_byte(at - _1, _CLOSE)
        put_byte(at, _END)
        put_byte(at + _1, _FEED)
        at += _2
    return np.int64(at - first)
