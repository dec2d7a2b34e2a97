"""Run folders: their card, their checkpoints, and how to open the network in them."""
