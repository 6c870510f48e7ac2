"""Questions about the host itself."""
