"""Questions about the drafter."""
