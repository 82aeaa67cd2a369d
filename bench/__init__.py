"""Measurements of the server, each beside the bare limit of the same stack: ``python -m bench``."""
