"""Decide the turns of a conversation, from its opening to its close."""
