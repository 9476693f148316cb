"""Speed compared with NumPy, peers and the limits of the machine, in one interleaved run."""
