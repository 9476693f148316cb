"""Contingency tables of several attributes, and synthetic records, from the answers to joint questions."""

from __future__ import annotations

from hdr4me.tables.schema import table_schema
from hdr4me.tables.tables import Contingency, Tables, tables

__all__ = ["Contingency", "Tables", "table_schema", "tables"]
