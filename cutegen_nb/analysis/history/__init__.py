"""History of a session: comparison of candidates, lineage of revisions, predictions and summaries."""
