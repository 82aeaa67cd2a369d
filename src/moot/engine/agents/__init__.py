"""Agents at the nodes of a workflow: pinned versions, reports, desks."""
