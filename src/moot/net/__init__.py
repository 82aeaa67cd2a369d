"""Calls to addresses that others have a say in: where they may go, and how they go there."""
