"""Node types that only a conformance suite uses."""
