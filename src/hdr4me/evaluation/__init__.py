"""The room of evaluation."""
