"""What each client looks like: text and facts in, data out."""
