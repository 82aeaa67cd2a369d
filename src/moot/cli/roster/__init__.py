"""The roster on the command line: agents, standing agents and their memory."""
