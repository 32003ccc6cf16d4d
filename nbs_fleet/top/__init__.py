"""The dashboard: what `ps`, `queue`, `logs`, `chat` and `peek` show on one screen, kept up to date."""
