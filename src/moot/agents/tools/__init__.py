"""Tools of agents: functions, HTTP addresses and MCP servers."""
