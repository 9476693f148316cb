"""The data sets of section VI (three synthetic ones, an embeddings file or its stand-in), and anybody's own file."""

from __future__ import annotations

from hdr4me.paper.datasets.dataset import (
    Dataset,
    Moments,
    check_normalisation,
    chosen_dimensions,
    is_stored,
    moments,
    normalise,
    open_stored,
    store,
)
from hdr4me.paper.datasets.files import OwnFile, describe, load_cov19, load_own
from hdr4me.paper.datasets.synthetic import SYNTHETIC, cov19_stand_in, gaussian, poisson, uniform

__all__ = [
    "SYNTHETIC",
    "Dataset",
    "Moments",
    "OwnFile",
    "check_normalisation",
    "chosen_dimensions",
    "cov19_stand_in",
    "describe",
    "gaussian",
    "is_stored",
    "load_cov19",
    "load_own",
    "moments",
    "normalise",
    "open_stored",
    "poisson",
    "store",
    "uniform",
]
