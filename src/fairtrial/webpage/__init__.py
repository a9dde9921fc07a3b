"""Pages that models write: taken out of an answer, sealed off from everything, looked at in a browser."""
