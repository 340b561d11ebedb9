"""The page "Tidemark": every stream, where it stands and how long it can wait. It reads and changes nothing."""
