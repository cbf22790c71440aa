"""Values to text and back: prompts, replies, edits. Pure; jinja2 is the only package it needs."""
