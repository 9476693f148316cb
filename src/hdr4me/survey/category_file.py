"""Long lists of categories in separate files; standard library only.

If a survey has more than `LONG` categories from a file, its document holds the name of the file, the number of
categories and the SHA-256 of the list. The file is searched for in the folder of the document and in the folders of the
environment variable `HDR4ME_CATEGORIES`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hdr4me.atomic import write_text
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey.values import refused

T = TypeVar("T")
LONG = 4096  # the largest number of categories of a file that a document itself holds
VARIABLE = "HDR4ME_CATEGORIES"  # folders with lists of categories, separated as in `PATH`
_REMEMBERED = 4_000_000  # the total number of categories that a process stores, besides the last list
_known: dict[str, tuple[str, ...]] = {}
_given: ContextVar[dict[str, tuple[str, ...]] | None] = ContextVar("given", default=None)
_folders: ContextVar[tuple[Path, ...]] = ContextVar("folders", default=())


@dataclass(frozen=True)
class CategoryFile:
    """The name of a file, the number of its categories, and the SHA-256 of the list."""

    name: str
    count: int
    sha256: str

    @classmethod
    def of(cls, dimension: str, name: str, labels: Sequence[str]) -> CategoryFile:
        """The file called `name` with these categories of a dimension, one per line."""
        _check_name(dimension, name)
        for label in labels:
            if label != label.strip() or label.splitlines() != [label]:
                raise refused(
                    dimension,
                    f"category {label!r} cannot be written to a file: a category must be one line "
                    "that is not blank and has no leading or trailing spaces",
                )
        return cls(name, len(labels), remember(labels))

    @classmethod
    def from_dict(cls, dimension: str, document: Any) -> CategoryFile:
        """The file that a document describes."""
        what = f"dimension {dimension!r}: categories_file"
        if not isinstance(document, Mapping) or set(document) != {"name", "count", "sha256"}:
            raise FormatError(f"{what} must be an object with name, count and sha256")
        name, count, sha256 = (document[field] for field in ("name", "count", "sha256"))
        if type(count) is not int or not isinstance(sha256, str) or not isinstance(name, str):
            raise FormatError(f"{what}: name and sha256 must be strings, count must be an integer")
        _check_name(dimension, name)
        return cls(name, count, sha256)


def digest(labels: Iterable[str]) -> str:
    """SHA-256 of the categories, each followed by a line feed."""
    return hashlib.sha256("".join(f"{label}\n" for label in labels).encode("utf-8")).hexdigest()


def remember(labels: Iterable[str]) -> str:
    """Keep a list in this process, so that documents with its hash can be loaded; returns the hash."""
    stored = tuple(labels)
    key = digest(stored)
    _known.pop(key, None)
    _known[key] = stored
    while len(_known) > 1 and sum(map(len, _known.values())) > _REMEMBERED:
        del _known[next(iter(_known))]
    return key


def read_list(path: Path) -> tuple[str, ...]:
    """The categories in a file, one per line; blank lines and surrounding white space are ignored."""
    lines = (line.strip() for line in path.read_text("utf-8-sig").splitlines())
    return tuple(line for line in lines if line)


def looking_in(folder: Path) -> AbstractContextManager[None]:
    """Search this folder first."""
    return _setting(_folders, (folder, *_folders.get()))


def looking_among(lists: Iterable[Iterable[str]]) -> AbstractContextManager[None]:
    """Search these lists first."""
    return _setting(_given, {digest(labels): labels for labels in map(tuple, lists)})


def loaded(path: str | os.PathLike[str], parse: Callable[[bytes], T]) -> T:
    """The result of `parse` for the bytes of a file; lists are searched for in its folder, and errors name the file."""
    try:
        with looking_in(Path(path).parent):
            return parse(Path(path).read_bytes())
    except FingerprintMismatch as error:
        raise FingerprintMismatch(str(path), error.expected, error.found) from error
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


@contextmanager
def _setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def find(dimension: str, wanted: CategoryFile) -> tuple[str, ...]:
    """The categories with the hash of a document, from this process or from a file; FormatError if not found."""
    what = f"dimension {dimension!r}: its {wanted.count:,} categories are in {wanted.name!r}"
    labels = (_given.get() or {}).get(wanted.sha256, _known.get(wanted.sha256))
    if labels is not None:
        if len(labels) != wanted.count:
            raise FormatError(f"{what}, but the list with this SHA-256 has {len(labels):,}")
        return labels
    listed = os.environ.get(VARIABLE, "").split(os.pathsep)
    folders = [*_folders.get(), *(Path(folder) for folder in listed if folder)]
    for path in (folder / wanted.name for folder in folders if (folder / wanted.name).is_file()):
        try:
            labels = read_list(path)
        except (OSError, ValueError) as error:
            raise FormatError(f"{what}, but {path} cannot be read: {error}") from error
        found = remember(labels)
        if found != wanted.sha256 or len(labels) != wanted.count:
            raise FormatError(
                f"{what}, but {path} has {len(labels):,} categories with SHA-256 {found[:16]}… "
                f"instead of {wanted.sha256[:16]}…. Use the file with which the survey was created"
            )
        return labels
    where = ", ".join(map(str, folders)) or "no folder"
    raise FormatError(
        f"{what} (SHA-256 {wanted.sha256[:16]}…), which was not found in {where}: put the file next to the survey, or "
        f"add its folder to the environment variable {VARIABLE}"
    )


def write_beside(path: Path, dimension: str, file: CategoryFile, labels: Iterable[str]) -> None:
    """Write the list into the folder of a document; a file with a different list is not replaced."""
    place = path.parent / file.name
    if not place.exists():
        write_text(place, "".join(f"{label}\n" for label in labels))
        return
    try:
        found = digest(read_list(place))
    except (OSError, ValueError):
        found = ""
    if found != file.sha256:
        raise InvalidInput(
            f"{path} cannot be written: dimension {dimension!r} needs its list of categories next to it, but {place} "
            "holds a different list"
        )


def _check_name(dimension: str, name: Any) -> None:
    if not isinstance(name, str) or not name or name in (".", "..") or set(name) & set("/\\\0"):
        raise refused(dimension, f"categories_file = {name!r} must be the name of a file")
