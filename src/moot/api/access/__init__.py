"""API keys, signed links and the trust in local programs."""
