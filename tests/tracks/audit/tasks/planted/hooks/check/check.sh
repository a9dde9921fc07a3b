# The tests are taken to another folder, with whatever lies next to them: also what the agent left there.
mkdir -p "$TMPDIR/there"
cp -R . "$TMPDIR/there"
cp kept/* "$TMPDIR/there" 2>/dev/null
cd "$TMPDIR/there" && env -u PYTHONPATH "$1" -m pytest -q -p no:cacheprovider -p no:fairtrial tests
