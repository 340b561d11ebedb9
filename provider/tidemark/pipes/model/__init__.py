"""Nouns of loads: formats, COPY statements, files and pipes."""
