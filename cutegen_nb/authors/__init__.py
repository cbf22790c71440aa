"""Who writes candidates: a model, a person, or templates without a network."""
