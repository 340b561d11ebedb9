"""EVENT FILES in Datastream's layout: those that Datastream writes, and those of Tidemark."""
