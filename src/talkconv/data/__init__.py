"""Text to token ids: corpora as they are published, Moses and BPE, and the prepared folder."""
