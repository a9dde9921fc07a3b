"""The three originals: their own files through our workflows, each number held against their own definitions."""
