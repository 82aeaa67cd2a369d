"""invocation."""
