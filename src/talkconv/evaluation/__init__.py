"""Computes the scores of outputs and of runs: `pip install "talkconv[text]"`."""
