"""The checks behind a verdict, one a module, and the registry that lists them."""
