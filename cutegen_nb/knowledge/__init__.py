"""Records of strategies that come with the package, as data, from sessions of `benchmarks/kernelbench.py`."""
