"""Search for the best outputs of a network. Imports numpy alone, so that it runs without torch."""
