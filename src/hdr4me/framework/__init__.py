"""The room of framework."""
