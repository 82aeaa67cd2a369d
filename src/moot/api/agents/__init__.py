"""Routes for agents, their deployments and their tools."""
