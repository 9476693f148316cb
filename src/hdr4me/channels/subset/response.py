"""What subset selection says about each category: a report names the categories of its subset."""

from __future__ import annotations

from hdr4me.channels.heavy_response import NamingResponse

__all__ = ["SubsetResponse"]


class SubsetResponse(NamingResponse):
    """The counters are the categories."""
