"""What is typed: arguments, options and help of the commands; `cli/NAME.py` carries a command out."""
