"""Turns text into token ids: corpora, tokenization, vocabularies and the prepared folder."""
