"""The readings of λ*: what the paper leaves open in Lemmas 4 and 5, each as a named choice.

- *how large is a supremum*: sup|θ̂_j − θ̄_j| of a normal law is infinite, so it is |centre| + z·σ_j with
  z = 1, 2, 3, or the z that all d dimensions keep at once with 95 %;
- *about what*: `noise` takes z·σ_j, the spread about the mechanism's own mean; `deviation` adds the bias |δ_j|
  (the same thing for Laplace and Piecewise, which have none);
- *L2's reference* for the unknown θ̄_j: `bias` (the paper's words: the mean of the deviation's normal law),
  `domain` (1, the largest mean there can be) or `plug-in` (|θ̂_j|, clipped).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from hdr4me.errors import InvalidInput

WIDTHS = ("1", "2", "3", "joint")
SPREADS = ("noise", "deviation")
REFERENCES = ("bias", "domain", "plug-in")


@dataclass(frozen=True, order=True)
class Reading:
    """One way to read λ* for L1 and L2 together."""

    width: str
    spread: str
    reference: str

    def note(self, *found: object) -> None:
        """Told each number that is looked up under this reading; a plain reading forgets it.

        `hdr4me.paper.claims.claim` uses a reading that remembers, to see which readings coincide.
        """

    @property
    def name(self) -> str:
        """As it is written on the command line.

        >>> Reading("2", "noise", "bias").name
        'z2-noise-bias'
        """
        return f"z{self.width}-{self.spread}-{self.reference}"

    @property
    def title(self) -> str:
        """As tables and figures write it."""
        z = "joint 95 %" if self.width == "joint" else self.width
        return f"z = {z}, {self.spread}, L2 reference {self.reference}"


READINGS = tuple(Reading(*choice) for choice in product(WIDTHS, SPREADS, REFERENCES))
DEFAULT = Reading("1", "noise", "bias")
"""The reading under which most claims held in the full run of seed 1; the report counts them for every reading."""


def reading_named(name: str) -> Reading:
    """The reading of that name.

    >>> reading_named("z1-noise-domain").reference
    'domain'
    """
    for reading in READINGS:
        if reading.name == name:
            return reading
    parts = "-".join("{" + ",".join(choices) + "}" for choices in (WIDTHS, SPREADS, REFERENCES))
    raise InvalidInput.of("reading", name, f"'z{parts}', such as '{DEFAULT.name}'")
