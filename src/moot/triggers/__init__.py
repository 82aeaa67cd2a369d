"""What wakes standing agents: rosters, schedules, subscriptions, deliveries in and out."""
