"""The command line: one command family a file. Options in, one call, exit code out; decides nothing."""
