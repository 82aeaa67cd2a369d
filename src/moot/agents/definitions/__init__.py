"""Definitions of agents: manifests, versions and deployments."""
