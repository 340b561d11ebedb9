"""Data files in a directory as rows: the list of the files, and the rows of those that are new."""
