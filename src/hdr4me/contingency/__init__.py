"""Contingency tables of several attributes, and synthetic records, from the answers to joint questions."""

from __future__ import annotations

from hdr4me.contingency.plan import plan_tables
from hdr4me.contingency.schema import table_schema
from hdr4me.contingency.tables import Contingency, Tables, tables

__all__ = ["Contingency", "Tables", "plan_tables", "table_schema", "tables"]
