"""Agents that speak: who they are, what they are told, which model and which tools they use."""
