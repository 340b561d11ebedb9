"""Nouns: frozen dataclasses and enums of the standard library. Those that cross processes have a JSON form."""
