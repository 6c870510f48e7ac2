"""What the GPUs are and do."""
