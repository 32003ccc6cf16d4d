"""The team file: read, checked, and expanded into a Team."""
