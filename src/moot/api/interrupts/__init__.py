"""Routes that answer interrupts, and the inbox of open ones."""
