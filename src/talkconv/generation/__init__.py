"""A network to text: batches by length, search, and the command."""
