"""Members of a population: their speed, their selection, and a summary in rows."""
