"""From a trained run to something people use: the export, its runtime without torch, the server."""
