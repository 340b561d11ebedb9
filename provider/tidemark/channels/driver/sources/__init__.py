"""Replayable sources that come with Tidemark: from a token on, they give the same rows again."""
