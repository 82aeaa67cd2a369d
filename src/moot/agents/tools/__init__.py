"""Where tools come from: functions, HTTP addresses, MCP servers."""
