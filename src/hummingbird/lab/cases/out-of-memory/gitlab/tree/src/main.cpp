#include "tidewatch.h"
#include <iostream>

int main(int count, char **words) {
    auto found = tidewatch::forecast(tidewatch::harbour(), 6);
    for (const auto &level : found) tidewatch::too_high(level, 6.0);
    std::cout << tidewatch::report(found);
    if (count > 1 && found.size() != 6) return 1;
    if (count > 1) std::cout << "checked " << found.size() << " levels\n";
}
