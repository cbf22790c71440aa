"""Child processes, one per request: start, limit, talk to and end them. Imports no torch, judges nothing."""
