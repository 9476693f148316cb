"""Compilation, threads, and the instructions that numba does not offer."""
