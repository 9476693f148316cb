"""What a table says about each of its numbers."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hdr4me.channels.response import Marginal, Response, probabilities

__all__ = ["TableResponse"]


class TableResponse(Response):
    """A number, an optional number, or one of several numbers that share a table."""

    def n_coordinates(self, place: int = 0) -> int:
        return 1

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        return self._marginals[place]

    @cached_property
    def _marginals(self) -> list[Marginal]:
        return [self._made(place) for place in range(len(self.channel.takes))]

    def _made(self, place: int) -> Marginal:
        sizes = [take.size for take in self.channel.takes]
        law = probabilities(self.channel.weights).reshape(*sizes, -1)
        own = np.moveaxis(law, place, 0).reshape(sizes[place], -1, law.shape[-1])
        suffix = f" {place + 1}" if place else ""
        names = [name for name in ("value", "present") if name + suffix in self.channel.decoders]
        n_levels = sizes[place] - (len(names) - 1)
        levels = np.linspace(-1.0, 1.0, n_levels)
        exact = [2 * i / (n_levels - 1) - 1 for i in range(n_levels)]
        targets = {"value": np.append(exact, np.zeros(sizes[place] - n_levels))}
        if len(names) > 1:
            targets["present"] = np.append(np.ones(n_levels), 0.0)
        decoders = {name: np.array(self.channel.decoders[name + suffix], np.float64) for name in names}
        return Marginal(own, targets, decoders, levels)
