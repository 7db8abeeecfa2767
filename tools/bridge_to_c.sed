# Makes C of src/record/bridge.py: a string of its lines.
s/[\\"]/\\&/g
s/.*/"&\\n"/
1i extern const char tmk_bridge_source[];\
const char tmk_bridge_source[] =
$a ;
