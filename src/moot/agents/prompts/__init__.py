"""Prompts: what a model reads, with the text of others fenced."""
