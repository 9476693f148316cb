"""The client, on the user's device; standard library only, directly and through the packages that it imports."""

from __future__ import annotations

from hdr4me.client.client import Client, MemoizedClient
from hdr4me.client.ledger import Ledger

__all__ = ["Client", "Ledger", "MemoizedClient"]
