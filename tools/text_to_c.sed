# Makes of a text the lines of a C string.
s/[\\"]/\\&/g
s/.*/"&\\n"/
