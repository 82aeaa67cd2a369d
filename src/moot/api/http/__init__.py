"""HTTP mechanics: connections, requests, idempotency, rate limits."""
