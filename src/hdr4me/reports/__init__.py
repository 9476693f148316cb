"""The room of reports."""
