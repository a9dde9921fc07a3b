"""Makes shop.db, the database behind the MCP server of this task."""

import sqlite3

with sqlite3.connect("shop.db") as database:
    database.execute("CREATE TABLE orders (customer TEXT, item TEXT, quantity INTEGER)")
    rows = [("Ann", "lamp", 2), ("Ben", "desk", 1), ("Ann", "desk", 3), ("Cem", "lamp", 7), ("Ben", "lamp", 1)]
    database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
