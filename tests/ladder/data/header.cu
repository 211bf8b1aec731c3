// Rung 7 (a trap): a title over
// two lines.
//
// Changed:  first,
//           second.
// Why:      because.
// Tile:     BM = 8
#include <x>
// Why: not this
