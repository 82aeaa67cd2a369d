"""agent_bridge."""
