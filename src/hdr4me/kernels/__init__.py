"""Compiled loops over plain arrays; inputs and outputs are arrays.

- `exact`: records to reports with the system's randomness (start with `perturb`), and reports to counts (`count`);
- `simulate`: seeded draws of continuous mechanisms for analysis, summed while they are drawn (`fused`);
- `machine`: compilation and its cache, threads, and instructions that numba lacks.
"""
