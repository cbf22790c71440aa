"""Authors of candidates: a model, a person, a recording, or templates without a network."""
