"""Schedules, subscriptions and deliveries: everything that starts runs by itself."""
