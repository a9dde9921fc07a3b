PATH="$PWD/bin:$PATH"
echo made > right.txt
cmp -s made.txt right.txt
