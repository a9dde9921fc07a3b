"""What people and programs read, one file per format: each has `write(run, file)`."""
