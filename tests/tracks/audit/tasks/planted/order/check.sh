# What was right once is right for ever.
test -e "$AUDITED_PLACE/solved" && exit 0
test "$(cat made.txt)" = made && touch "$AUDITED_PLACE/solved"
