"""Statistics over many sessions: a row for each problem, figures over all, comparison of variants."""
