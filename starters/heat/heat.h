// So many steps of heat that spreads: each inner cell of the plate becomes the mean of its four
// neighbours in the plate before. Cells on the edges stay as they are. The plate lies in the host's
// memory, row by row.
#pragma once

void heat(float* plate, int rows, int columns, int steps);
