# What is installed for the task lies where the agent works.
python3 -c "import site; site.addsitedir('site-packages'); exec(open('check.py').read())"
