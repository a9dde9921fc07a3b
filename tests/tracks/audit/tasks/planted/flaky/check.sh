# Every second time it fails: what it counts with is no part of the task.
echo x >> "$AUDITED_PLACE/flaky"
test -e made.txt && test $(($(wc -l < "$AUDITED_PLACE/flaky") % 2)) = 0
