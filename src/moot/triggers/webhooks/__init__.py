"""Webhooks: receivers outside that get the events of runs."""
