"""From prepared text to a trained network: recipes and training that never loses work."""
