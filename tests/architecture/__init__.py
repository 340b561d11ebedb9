"""Rooms, layers and the wheel."""
