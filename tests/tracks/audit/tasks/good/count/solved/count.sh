tr ' ' '\n' < "$1" | sort | uniq -c | sort -rn | awk '{print $2, $1}'
