"""Seeded draws of continuous mechanisms, summed while they are drawn."""
