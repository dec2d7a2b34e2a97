"""Searches for the best outputs of a network. It imports only numpy, so it runs without torch."""
