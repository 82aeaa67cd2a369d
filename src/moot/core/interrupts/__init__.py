"""Decide interrupts: questions, their answers, deadlines and the inbox."""
