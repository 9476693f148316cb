"""How fast it is: against NumPy, peers and the machine's own limits, in one interleaved run."""
