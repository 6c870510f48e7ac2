"""The life of a run, a part a file: what runs next, one conversation, one host, many hosts, and what is made of it."""
