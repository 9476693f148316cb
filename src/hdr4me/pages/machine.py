"""What a run was made on, in words that say nothing about its owner."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def machine() -> dict[str, str]:
    """Processor, cores, memory and versions.

    >>> sorted(machine())
    ['cores', 'memory', 'numba', 'numpy', 'processor', 'python', 'scipy', 'system']
    """
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return found | {name: version(name) for name in ("numpy", "scipy", "numba")}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"
