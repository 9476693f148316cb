"""The room of cli."""
