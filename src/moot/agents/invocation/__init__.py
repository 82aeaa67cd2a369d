"""Invocation: one piece of work of an agent, from prompt to answer."""
