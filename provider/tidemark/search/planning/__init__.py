"""Decisions on search paths: columns, hashes, predicates, files and statements."""
