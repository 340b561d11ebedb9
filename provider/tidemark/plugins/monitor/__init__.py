"""The page "Tidemark": the state of every stream and of every replication. It reads and changes nothing."""
