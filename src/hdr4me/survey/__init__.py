"""The room of survey."""
