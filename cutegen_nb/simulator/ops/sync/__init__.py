"""Asynchronous copies and mbarriers."""
