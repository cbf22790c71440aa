"""Facts about a problem: reading its text, its workload class, FLOPs and bytes, and its admission."""
