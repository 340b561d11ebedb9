"""Nouns: frozen dataclasses and enums, standard library only; all that crosses a process has a JSON form."""
