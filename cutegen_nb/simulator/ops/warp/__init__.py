"""Instructions of a whole warp: shuffles, votes, matrix loads and products."""
