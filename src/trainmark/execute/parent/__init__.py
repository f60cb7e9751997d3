"""What runs in trainmark itself: plans, starts measured processes, listens, and writes records."""
