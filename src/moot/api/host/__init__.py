"""Routes about the host itself: discovery, health, metrics, API reference."""
