"""Trained results: the list of runs, the command that trains them, and the page about them."""
