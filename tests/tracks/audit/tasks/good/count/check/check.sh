printf 'b a b c b a\n' > other.txt
made=$(sh count.sh other.txt 2>/dev/null)
test "$made" = "b 3
a 2
c 1"
