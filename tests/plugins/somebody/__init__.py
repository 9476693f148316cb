"""A package that pretends to be somebody else's: it adds one thing of each kind to hdr4me and touches nothing inside.

`import somebody` registers all of it, as an entry point of an installed package would.
"""

from __future__ import annotations

from hdr4me.channels import CHANNELS
from hdr4me.engines import ENGINES
from hdr4me.mechanisms import register_mechanism
from hdr4me.statistics import STATISTICS
from hdr4me.survey import DIMENSIONS
from somebody.channel import Ladder
from somebody.dimension import Agreement, Count
from somebody.engine import open_halves
from somebody.mechanism import Shy
from somebody.statistic import LARGEST

register_mechanism("shy", Shy, summary="three reports, nought less often for large values")
CHANNELS.register("ladder", Ladder)
DIMENSIONS.register("agreement", Agreement)
DIMENSIONS.register("count", Count)
STATISTICS.register("largest", LARGEST)
ENGINES.register("halves", open_halves)
