"""Decide about supervisors and the workers that they hand work to."""
