"""A plug-in package of a third party: it adds one object of each kind to hdr4me through public functions only.

`import acme` registers all of it, as an entry point of an installed package would.
"""

from __future__ import annotations

from acme.channel import Ladder
from acme.dimension import Agreement, Count
from acme.engine import open_halves
from acme.family import Window
from acme.mechanism import Shy
from acme.statistic import LARGEST
from hdr4me.channels import CHANNELS
from hdr4me.channels.k_subset import FAMILIES
from hdr4me.engines import ENGINES
from hdr4me.mechanisms import register_mechanism
from hdr4me.statistics import STATISTICS
from hdr4me.survey import DIMENSIONS

register_mechanism("shy", Shy, summary="three reports, zero less often for large values")
CHANNELS.register("ladder", Ladder)
FAMILIES.register("window", Window)
DIMENSIONS.register("agreement", Agreement)
DIMENSIONS.register("count", Count)
STATISTICS.register("largest", LARGEST)
ENGINES.register("halves", open_halves)
