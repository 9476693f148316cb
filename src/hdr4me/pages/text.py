"""Text for sentences and tables: counts with nouns, lists, the machine; standard library only."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def pluralize(n: int, noun: str) -> str:
    """The number with separators, and the noun with an s unless the number is 1.

    >>> pluralize(1, "dimension"), pluralize(0, "user"), pluralize(12_000, "user")
    ('1 dimension', '0 users', '12,000 users')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Words with commas between them, and "and" before the last one.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)


def shortened(words: Sequence[str], shown: int = 3) -> str:
    """The first words, and the number of the others.

    >>> shortened(["a", "b", "c"]), shortened(["a", "b", "c", "d", "e"])
    ('a, b and c', 'a, b, c and 2 more')
    """
    return listed(first_of(words, shown))


def first_of(words: Sequence[str], shown: int = 3) -> list[str]:
    """The first words, and one that says how many others there are."""
    more = len(words) - shown
    return [*words[:shown], f"{more:,} more"] if more > 0 else list(words)


def machine() -> dict[str, str]:
    """Processor, cores, memory and versions of this machine."""
    try:
        model = re.search(r"^model name\s*:(.*)", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
        processor = model[1].strip() if model else "unknown"
    except OSError:
        processor = platform.processor() or "unknown"
    try:
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        memory = "unknown"
    return {
        "processor": processor,
        "cores": str(os.cpu_count() or 1),
        "memory": memory,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | {name: version(name) for name in ("numpy", "scipy", "numba")}
