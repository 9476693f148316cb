"""Contingency tables of several attributes, and synthetic records, from the answers to joint questions."""

from __future__ import annotations

from hdr4me.contingency.schema import table_schema
from hdr4me.contingency.tables import Contingency, Tables, tables

__all__ = ["Contingency", "Tables", "table_schema", "tables"]
