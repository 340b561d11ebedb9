"""Clustering: how well a table's files keep to its key, and the upkeep that lets them keep to it."""
