"""Decide about inbound and outbound triggers: subscriptions and webhooks."""
