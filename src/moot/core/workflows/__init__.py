"""Workflow definitions: their schema, checks and compiled form."""
