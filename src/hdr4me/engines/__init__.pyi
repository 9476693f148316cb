"""The public names of `hdr4me.engines` and the modules that define them: the only list (`__init__.py` reads it too)."""

from hdr4me.engines.local import Local as Local
from hdr4me.engines.one_call import collect as collect
from hdr4me.engines.one_call import run as run
from hdr4me.engines.protocol import ENGINES as ENGINES
from hdr4me.engines.protocol import Engine as Engine
from hdr4me.engines.spark_engine import Spark as Spark
from hdr4me.engines.spark_engine import spark as spark
from hdr4me.engines.spark_session import open_session as open_session
from hdr4me.engines.spark_stream import committed_tally as committed_tally
from hdr4me.io.reading import count_records as count_records

__all__: list[str]
