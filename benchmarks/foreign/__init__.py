"""Result files made with the real tools, and every number that a tool reports computed again from our store."""
