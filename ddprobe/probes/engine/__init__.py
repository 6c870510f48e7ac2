"""Questions about the inference servers that run."""
