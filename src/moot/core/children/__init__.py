"""Decide about child runs: dispatch, tree limits, attestation, peers."""
