"""The room of recalibrate."""
