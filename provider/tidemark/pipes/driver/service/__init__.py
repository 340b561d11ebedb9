"""Pipes over HTTP, in the ingest service: files that are named, and reports of their loads."""
