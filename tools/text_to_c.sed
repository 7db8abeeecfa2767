# Makes a C string of a text's lines. Who calls it gives the declaration: -e '1i const char NAME[] ='.
s/[\\"?]/\\&/g
s/.*/"&\\n"/
$a ;
