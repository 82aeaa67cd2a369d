"""Payloads of events: one Struct for each type of event, in the order in which it is written."""
