"""Every public name and the package that it is loaded from: the only list (`__init__.py` reads it too)."""

from hdr4me import channels as channels
from hdr4me import checks as checks
from hdr4me import engines as engines
from hdr4me import errors as errors
from hdr4me.accounting import amplification as amplification
from hdr4me.accounting import local_epsilon as local_epsilon
from hdr4me.auditing import audit as audit
from hdr4me.channels import Channel as Channel
from hdr4me.channels import KSubset as KSubset
from hdr4me.channels import Table as Table
from hdr4me.channels import UnaryEncoding as UnaryEncoding
from hdr4me.client import Client as Client
from hdr4me.client import Ledger as Ledger
from hdr4me.client import MemoizedClient as MemoizedClient
from hdr4me.comparison import Comparison as Comparison
from hdr4me.comparison import compare as compare
from hdr4me.contingency import Contingency as Contingency
from hdr4me.contingency import Tables as Tables
from hdr4me.contingency import table_schema as table_schema
from hdr4me.contingency import tables as tables
from hdr4me.explanation import explain as explain
from hdr4me.framework import Deviation as Deviation
from hdr4me.framework import deviation as deviation
from hdr4me.io import Report as Report
from hdr4me.io import infer_schema as infer_schema
from hdr4me.mechanisms import exact as exact
from hdr4me.mechanisms import mechanism as mechanism
from hdr4me.mechanisms import register_mechanism as register_mechanism
from hdr4me.mechanisms.law import Mechanism as Mechanism
from hdr4me.planner import Plan as Plan
from hdr4me.planner import plan as plan
from hdr4me.recalibration import Recalibration as Recalibration
from hdr4me.recalibration import recalibrate as recalibrate
from hdr4me.simulation import simulate as simulate
from hdr4me.statistics import Answer as Answer
from hdr4me.statistics import Statistic as Statistic
from hdr4me.statistics import ask as ask
from hdr4me.statistics import combine as combine
from hdr4me.statistics import estimate as estimate
from hdr4me.statistics import refine as refine
from hdr4me.survey import Categorical as Categorical
from hdr4me.survey import Dimension as Dimension
from hdr4me.survey import Numeric as Numeric
from hdr4me.survey import Product as Product
from hdr4me.survey import Question as Question
from hdr4me.survey import Schema as Schema
from hdr4me.survey import Selection as Selection
from hdr4me.survey import Survey as Survey
from hdr4me.survey import Vector as Vector
from hdr4me.survey.derived import Bucket as Bucket
from hdr4me.survey.derived import Joint as Joint
from hdr4me.tally import PairCounts as PairCounts
from hdr4me.tally import Tally as Tally

__all__: list[str]
__version__: str
