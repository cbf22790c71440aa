"""Campaigns: many problems in turn, each a session, with budgets over all and variants for ablations."""
