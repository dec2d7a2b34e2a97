"""Run folders: their card, their checkpoints, and the functions that open their networks."""
