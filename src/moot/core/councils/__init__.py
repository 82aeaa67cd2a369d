"""councils."""
