"""Records of strategies that come with the package, as data; `benchmarks/make_knowledge.py` writes them."""
