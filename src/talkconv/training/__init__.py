"""Trains networks on prepared text, by recipes. A run that was stopped can always be resumed."""
