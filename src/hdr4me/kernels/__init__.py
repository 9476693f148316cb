"""The room of kernels."""
