"""Test seams of a host that runs with ``--conformance``."""
