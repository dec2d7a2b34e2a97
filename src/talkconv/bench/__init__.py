"""The measured tables: speed, memory and exactness, on the machine at hand."""
