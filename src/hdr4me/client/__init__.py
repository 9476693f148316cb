"""The room of client."""
