"""THE PROMISE: begin, submit, commit, roll back (PROTOCOL section 3); the only caller of both the store and a job."""
