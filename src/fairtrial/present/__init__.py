"""What people read, once: words, figures, charts and tables, for every surface alike."""
