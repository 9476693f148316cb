"""The room of tally."""
