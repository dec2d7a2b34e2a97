"""Generates text with a network: batches of similar lengths, a search, and the command."""
