"""Scores of outputs and of runs: `pip install "talkconv[text]"`."""
