"""Databases into Delta: capture, backfill, apply."""
