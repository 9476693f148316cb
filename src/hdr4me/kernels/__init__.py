"""Compiled loops over plain arrays, in three rooms; no class of the package but the keystream is known here.

| room | what it does | start reading at |
|---|---|---|
| `exact` | from records to reports with the system's randomness, and from reports to counts | `perturb`, `count` |
| `simulate` | seeded draws of continuous mechanisms, summed while they are drawn | `fused` |
| `machine` | compilation, threads, and the instructions that numba does not offer | `jit` |

`exact` and `simulate` use `machine`; `simulate` also uses how `exact` reads columns and draws subsets.
"""
