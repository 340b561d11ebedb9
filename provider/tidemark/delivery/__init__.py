"""Writes that reach their target once: plan, marks, judgement, and the write itself."""
