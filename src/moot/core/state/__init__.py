"""The fold: the state of a run, worked out from its events. It decides nothing."""
