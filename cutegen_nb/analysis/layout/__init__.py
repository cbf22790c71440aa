"""CuTe layouts: evaluation, bank conflicts, thread–value partitions and changes between revisions."""
