"""Who needs a person: one queue for the whole team."""
