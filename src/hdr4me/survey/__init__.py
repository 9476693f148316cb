"""Surveys: what is asked, and by which integer tables it is randomised; standard library only to load and use."""

from __future__ import annotations

from hdr4me.survey.randomizer import Randomizer
from hdr4me.survey.schema import Categorical, Dimension, Numeric, Schema
from hdr4me.survey.survey import Survey

__all__ = ["Categorical", "Dimension", "Numeric", "Randomizer", "Schema", "Survey"]
