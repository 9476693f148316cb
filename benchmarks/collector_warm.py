"""Loaded once by the process that the crash campaign forks its services from: everything they need, compiled."""

from __future__ import annotations

import numpy as np

import hdr4me.collector.serve
import hdr4me.collector.stores.postgres.store
import hdr4me.collector.stores.sqlite.store  # noqa: F401
from collector_crash_service import the_survey
from hdr4me.collector.forms import Forms
from hdr4me.tally import Tally

_survey = the_survey()
Forms(1, _survey).warm()
Tally(_survey).add_block(np.zeros((1, _survey.report_size), np.uint8))
