"""Trained results: the list of runs, how they are trained again, and the page about them."""
