test "$(cat made.txt)" = "$(cut -d: -f2 key.txt)"
