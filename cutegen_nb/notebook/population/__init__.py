"""Population of a session in the panel and as magics."""
