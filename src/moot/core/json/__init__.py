"""Canonical JSON, and JSON Schema with bounded cost."""
