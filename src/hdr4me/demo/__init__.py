"""The demonstration: a simulated panel, collected, answered and drawn."""
