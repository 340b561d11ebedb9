"""Removing what nobody needs, and reading what is older than the table by itself keeps."""
