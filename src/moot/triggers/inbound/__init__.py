"""Inbound work: subscriptions, queues, and the deliveries that become runs."""
