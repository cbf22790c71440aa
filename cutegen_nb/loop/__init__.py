"""The refinement loop: one round, a session of rounds, when to stop, and who decides."""
