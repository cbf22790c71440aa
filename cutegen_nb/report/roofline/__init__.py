"""Roofline chart of a session, and its description in sentences."""
