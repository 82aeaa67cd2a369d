"""Routes for subscriptions, queues, deliveries and webhooks."""
