"""The PTX instructions that are documented, and which of them are simulated."""
