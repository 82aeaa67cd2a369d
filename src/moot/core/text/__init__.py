"""Names, mentions and words in texts."""
