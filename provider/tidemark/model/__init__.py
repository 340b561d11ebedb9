"""Nouns: frozen dataclasses and enums of the standard library. Values that cross processes have a JSON form."""
