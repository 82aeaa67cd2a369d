"""Workflow definitions as the host runs them."""
