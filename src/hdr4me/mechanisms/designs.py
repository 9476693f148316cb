"""A design: integer rows with one or more decoders, made from a channel of the linear programme, and kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from hdr4me.channels.proof import BITS, column_loss, exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.cache import cache_directory
from hdr4me.mechanisms.law import Floats

__all__ = ["DESIGNS_VERSION", "Design", "cached_design"]

DESIGNS_VERSION = 3
"""Raised whenever a change makes different designs: older files are then left alone."""

_UNBIASED = 1e-9
"""How far a row's mean may be from what it stands for, relative to the largest decoded value."""


@dataclass(frozen=True)
class Design:
    """An integer channel: input row i is reported as cell y with probability weights[i][y] / 2^32.

    `levels` are the equally spaced levels of a number on [-1, 1]. What the rows stand for depends on `takes`:

    - "number": row i is a number at level i. The decoder "value" has the level for its mean.
    - "optional": row i is a number at level i, the last row is a missing number. The decoder "value" has the mean
      t where there is a number and 0 where there is none, "present" has the mean 1 and 0.
    - "pair": row i·L + j is a first number at level i and a second number at level j (L levels). The decoders
      "first" and "second" have these levels for means.

    A number between two levels is rounded to one of them at random, so that its expectation is kept.
    """

    takes: str
    epsilon: float
    levels: tuple[float, ...]
    weights: tuple[tuple[int, ...], ...]
    decoders: Mapping[str, tuple[float, ...]]
    privacy_loss: Fraction = field(init=False)

    def __post_init__(self) -> None:
        """Every row sums to 2^32, the loss is at most e^ε, the decoders are unbiased; or it is no design."""
        cells = len(self.weights[0])
        if any(len(row) != cells or sum(row) != 1 << BITS for row in self.weights):
            raise InvalidInput(f"a design's rows must have equally many cells and sum to 2**{BITS}")
        loss = column_loss(self.weights)
        if loss > exp_lower(self.epsilon):
            raise InvalidInput(
                f"a design with privacy loss {float(loss):.12g} is more than e^epsilon at epsilon = {self.epsilon}"
            )
        means = self.means
        for name, decoder in self.decoders.items():
            for row, mean in zip(self.weights, means[name], strict=True):
                found = sum(w * y for w, y in zip(row, decoder, strict=True)) / (1 << BITS)
                if abs(found - mean) > _UNBIASED * max(1.0, *map(abs, decoder)):
                    raise InvalidInput(
                        f"decoder {name!r} has the mean {found!r} in a row that stands for {mean!r}"
                    )
        object.__setattr__(self, "privacy_loss", loss)

    @property
    def means(self) -> dict[str, tuple[float, ...]]:
        """What each decoder's mean is in each row."""
        t = self.levels
        if self.takes == "number":
            return {"value": t}
        if self.takes == "optional":
            return {"value": (*t, 0.0), "present": (*[1.0] * len(t), 0.0)}
        return {"first": tuple(a for a in t for _ in t), "second": tuple(b for _ in t for b in t)}

    @property
    def probabilities(self) -> Floats:
        """weights / 2^32, exact in floating point."""
        return np.ldexp(np.array(self.weights, dtype=np.float64), -BITS)

    def second_moments(self, name: str) -> Floats:
        """E[decoder²] of each row."""
        return np.asarray(self.probabilities @ np.array(self.decoders[name]) ** 2)


_memory: dict[tuple[Path | None, str], Design] = {}
_lock = Lock()


def cached_design(key: Mapping[str, Any], make: Callable[[], Design]) -> Design:
    """The design from memory, else from disk, else made and kept.

    A file is only a hint: its digest must fit and what it holds must pass every check of `Design`; otherwise the design
    is made again. A disk that cannot be written is no error.
    """
    directory = cache_directory()
    text = json.dumps(dict(key), sort_keys=True)
    with _lock:
        if (directory, text) not in _memory:
            name = hashlib.sha256(text.encode()).hexdigest()[:24]
            path = None if directory is None else directory / f"design-v{DESIGNS_VERSION}-{name}.json"
            design = None if path is None else _read(path, text)
            if design is None:
                design = make()
                if path is not None:
                    _write(path, text, design)
            _memory[directory, text] = design
        return _memory[directory, text]


def _write(path: Path, key: str, design: Design) -> None:
    content = json.dumps(
        {
            "key": key,
            "takes": design.takes,
            "epsilon": design.epsilon.hex(),
            "levels": design.levels,
            "weights": design.weights,
            "decoders": {name: [x.hex() for x in cells] for name, cells in design.decoders.items()},
        }
    ).encode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".design-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _read(path: Path, key: str) -> Design | None:
    """The design in the file, or None if there is no such file or it is not what it should be."""
    try:
        raw = path.read_bytes()
        if hashlib.sha256(raw[32:]).digest() != raw[:32]:
            return None
        stored = json.loads(raw[32:])
        if stored["key"] != key:
            return None
        return Design(
            stored["takes"],
            float.fromhex(stored["epsilon"]),
            tuple(stored["levels"]),
            tuple(tuple(row) for row in stored["weights"]),
            {name: tuple(float.fromhex(x) for x in cells) for name, cells in stored["decoders"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
