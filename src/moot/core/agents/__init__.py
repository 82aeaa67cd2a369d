"""Decide about agents in a run: their events, deployments and model keys."""
