"""The room of estimate."""
