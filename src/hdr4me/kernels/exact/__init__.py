"""From records to reports with the system's randomness, and from reports to counts."""
