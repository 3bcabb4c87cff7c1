#include "tidewatch.h"

double tidewatch::feet(double metres) { return metres / 0.3048; }
