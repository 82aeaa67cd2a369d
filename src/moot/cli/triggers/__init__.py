"""Triggers on the command line: queues, items, inbound hooks and webhooks."""
