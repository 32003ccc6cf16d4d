"""Second stage: a team and what runs of it become a plan, its steps, and the texts of the files to write. Pure."""
