"""A write reaches its target once: plan, marks, judgement, and the write itself."""
