"""Surveys: the questions and the channels that randomize the answers.

Loading and using a survey needs only the standard library.
"""

from __future__ import annotations

from hdr4me.survey.categorical import Categorical, Selection
from hdr4me.survey.dimension import DIMENSIONS, Dimension
from hdr4me.survey.numeric import Numeric, Product
from hdr4me.survey.question import Question
from hdr4me.survey.schema import Schema, Tolerance
from hdr4me.survey.survey import Survey
from hdr4me.survey.vector import Vector

__all__ = [
    "DIMENSIONS",
    "Categorical",
    "Dimension",
    "Numeric",
    "Product",
    "Question",
    "Schema",
    "Selection",
    "Survey",
    "Tolerance",
    "Vector",
]
