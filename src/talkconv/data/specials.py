"""The special entries of every vocabulary, in the order of their ids."""

BOS, PAD, EOS, UNK = SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
# The smallest vocabulary over raw text has an entry for each byte.
SMALLEST_RAW = len(SPECIALS) + 256
