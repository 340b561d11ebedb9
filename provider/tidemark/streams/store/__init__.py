"""Streams, offsets and transactions in the control store: tables, queries and state moves."""
