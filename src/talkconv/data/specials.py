"""The special entries of every vocabulary, whose ids are their places here."""

BOS, PAD, EOS, UNK = SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
# The smallest vocabulary over raw text has an entry for each byte.
SMALLEST_RAW = len(SPECIALS) + 256
