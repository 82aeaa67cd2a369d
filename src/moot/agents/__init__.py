"""Agents: definitions, roster, prompts, models, tools, and their invocation."""
