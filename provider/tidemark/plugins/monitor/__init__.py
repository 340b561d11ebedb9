"""The page "Tidemark": every stream and every replication, where each stands. It reads and changes nothing."""
