"""The pure part: what is so (fold), what may happen (decide), what is owed (pending).

Nothing here reads a clock, draws a random number or touches the world; times and ids come in
with the command.
"""
