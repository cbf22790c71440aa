"""Notebook: `%%cutegen`, its panel, and the session as an object. The command line imports none of it."""
