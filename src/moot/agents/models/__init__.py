"""Models: one streaming protocol and its providers. SDKs load on first use."""
