"""Questions about the installed engine source."""
