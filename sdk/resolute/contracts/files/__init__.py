"""What both sides of a transfer of files agree on: names of files and of their places, and digests."""
