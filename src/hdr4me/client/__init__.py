"""The client, on the user's device; standard library only, directly and through the rooms it uses."""

from __future__ import annotations

from hdr4me.client.client import Client
from hdr4me.client.ledger import Ledger
from hdr4me.client.permanent import PermanentClient

__all__ = ["Client", "Ledger", "PermanentClient"]
