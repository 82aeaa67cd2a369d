"""Agents: what they are and the models that speak for them. No rule of a run lives here."""
