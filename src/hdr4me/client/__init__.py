"""The client that runs on the user's device; it and everything it imports use the standard library only."""

from __future__ import annotations

from hdr4me.client.client import Client, MemoizedClient
from hdr4me.client.ledger import Ledger

__all__ = ["Client", "Ledger", "MemoizedClient"]
