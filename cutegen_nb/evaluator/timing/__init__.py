"""Latency of a correct candidate on a GPU, and checks that the measurement is plausible."""
