"""Text output of verdicts and sessions for a terminal."""
