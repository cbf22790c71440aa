"""Catalogue of checks as data: name, tier and the exploit that each stops. Imports no torch."""
