"""Payloads of events: one Struct for each type, its fields in written order."""
