"""Verification: check that a log is one this host could have written."""
