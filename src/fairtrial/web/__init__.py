"""Pages for people, served on this machine."""
