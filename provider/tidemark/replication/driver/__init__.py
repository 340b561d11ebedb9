"""Databases into Delta: capture, backfill, write-down."""
