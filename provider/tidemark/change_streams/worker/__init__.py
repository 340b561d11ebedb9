"""Change streams and their readers: each state move by name, each retry harmless."""
