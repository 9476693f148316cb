"""A data set on disk, made once: workers map only the columns they use, and the machine keeps one copy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdr4me.atomic import replacing, write_text
from hdr4me.paper.datasets.dataset import Dataset
from hdr4me.paper.datasets.moments import Moments, moments

__all__ = ["Stored", "is_stored", "open_stored", "store"]


@dataclass(frozen=True, eq=False)
class Stored:
    """A data set read from its file, with its moments."""

    data: Dataset
    moments: Moments


def store(dataset: Dataset, path: Path) -> None:
    """Write every column once (float32, one after the other) and, last, the description beside it."""
    with replacing(path) as temporary, temporary.open("wb") as out:
        rows = []
        for j in range(dataset.n_dims):
            column = dataset.column(j)
            found = moments([column])
            rows.append((float(found.mean[0]), float(found.square[0])))
            out.write(column.tobytes())
    about = {
        "name": dataset.name,
        "title": dataset.title,
        "n_users": dataset.n_users,
        "n_dims": dataset.n_dims,
        "normalisation": dataset.normalisation,
        "stand_in": dataset.stand_in,
        "moments": rows,
    }
    write_text(path.with_suffix(".json"), json.dumps(about))


def is_stored(path: Path) -> bool:
    """Whether `store` finished there, and both files are whole."""
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        size = 4 * about["n_dims"] * about["n_users"]
        return bool(path.stat().st_size == size and len(about["moments"]) == about["n_dims"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def open_stored(path: Path) -> Stored:
    """What `store` wrote."""
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    mean, square = np.array(about.pop("moments")).T
    shape = (about["n_dims"], about["n_users"])
    whole = np.memmap(path, dtype=np.float32, mode="r", shape=shape)
    return Stored(Dataset(**about, column=lambda j: np.asarray(whole[j])), Moments(mean, square))
