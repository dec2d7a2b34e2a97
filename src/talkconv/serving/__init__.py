"""Exports and serves trained networks: the export, its runtime without torch, and the server."""
