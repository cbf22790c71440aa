"""Graph reader: the traced reference in the offline author's own operations."""
