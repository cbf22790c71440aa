"""Pure functions from numbers and source text to findings. Imports only core and the standard library."""
