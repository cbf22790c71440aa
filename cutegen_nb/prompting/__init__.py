"""Prompt rendering and reply parsing: values to text and back. Pure; jinja2 is the only dependency."""
