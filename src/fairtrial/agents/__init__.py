"""What agents share, whichever program they are: their surroundings, the record of a session, and its life."""
