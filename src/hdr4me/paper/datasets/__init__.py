"""The data sets of section VI (three synthetic ones, an embeddings file or its stand-in), and anybody's own file."""

from __future__ import annotations

from hdr4me.paper.datasets.cov19 import load_cov19
from hdr4me.paper.datasets.dataset import Column, Dataset
from hdr4me.paper.datasets.moments import Moments, moments
from hdr4me.paper.datasets.normalise import NORMALISATIONS, check_normalisation
from hdr4me.paper.datasets.own import OwnFile, describe, load_own
from hdr4me.paper.datasets.resample import chosen_dimensions
from hdr4me.paper.datasets.stand_in import cov19_stand_in
from hdr4me.paper.datasets.stored import Stored, is_stored, open_stored, store
from hdr4me.paper.datasets.synthetic import gaussian, poisson, uniform

__all__ = [
    "NORMALISATIONS",
    "Column",
    "Dataset",
    "Moments",
    "OwnFile",
    "Stored",
    "check_normalisation",
    "chosen_dimensions",
    "cov19_stand_in",
    "describe",
    "gaussian",
    "is_stored",
    "load_cov19",
    "load_own",
    "moments",
    "open_stored",
    "poisson",
    "store",
    "uniform",
]
