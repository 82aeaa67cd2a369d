"""Outside programs in a thread: join with a key, run the program, serve MCP tools."""
