"""Lessons in a notebook: predictions that are kept, and answers that are checked."""
