"""`talkconv serve`: an HTTP server around one network."""
