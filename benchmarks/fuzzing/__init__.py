"""Fuzzers of every reader: files and documents changed at random, and what each of them must come to."""
