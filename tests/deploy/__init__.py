"""Tests of the files in deploy/: those with the marker `deploy` need the judges that `make deploy` installs."""
