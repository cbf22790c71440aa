"""The notebook: `%%cutegen`, its panel, and the session as an object. Nothing here is imported by the command line."""
