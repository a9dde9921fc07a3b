"""What people read on every surface, held against the JSON documents."""
