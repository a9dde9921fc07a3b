"""The folders in which agents work: made for every attempt, limited, and kept as what has changed."""
