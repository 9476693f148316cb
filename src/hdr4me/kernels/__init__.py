"""Compiled loops over plain arrays, in three folders: arrays come in, arrays go out.

`exact`: from records to reports with the system's randomness, and from reports to counts.

| file | what it does |
|---|---|
| `perturb` | start here: records to report bytes, shared among threads |
| `keystream` | random bytes: AES in counter mode with a key from the operating system |
| `subset` | which dimensions a user reports: m of d without replacement |
| `projective` | points of a projective space, on a hyperplane or off it |
| `positions` | values to positions (row of the table, in fixed point) |
| `blocks` | the loop from sampled dimensions over positions and codes to the bytes of slots |
| `encode` | the same as `blocks` for a matrix of numbers when every dimension is sent |
| `count` | start here: report bytes to counts, every byte checked |

`simulate`: seeded draws of continuous mechanisms, for analysis.

| file | what it does |
|---|---|
| `fused` | start here: a whole collection, drawn and summed chunk by chunk |
| `generator` | random words: xoshiro256++ in sixteen lanes |
| `draws` | words and true values to perturbed values, for each family of laws |
| `accumulate` | column sums and sums of squares |
| `aggregate` | sums of many reports without drawing each of them |

`machine`: what both use.

| file | what it does |
|---|---|
| `jit` | how kernels are compiled and cached |
| `threads` | a pool of threads that share pieces of work |
| `intrinsics` | loads from addresses, prefetching, bit counts |

`simulate` also uses `subset` and the prefetching of `positions` from `exact`.
"""
