printf 'E03\nE17\n' > right.txt
cmp -s made.txt right.txt
