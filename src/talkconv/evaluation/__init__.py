"""From a model to outputs and scores: `pip install "talkconv[text]"`."""
