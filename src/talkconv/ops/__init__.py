"""The operation: tensors in, tensors out. Needs torch alone."""
