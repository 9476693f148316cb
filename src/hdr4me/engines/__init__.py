"""The room of engines."""
