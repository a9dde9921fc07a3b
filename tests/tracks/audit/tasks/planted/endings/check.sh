python3 total.py > /dev/null || exit 1
python3 total.py
