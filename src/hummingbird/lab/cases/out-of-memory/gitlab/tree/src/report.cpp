#include "tidewatch.h"
#include <iomanip>
#include <sstream>

std::string tidewatch::report(const std::vector<Level> &levels) {
    std::ostringstream page;
    page << std::fixed << std::setprecision(2);
    page << std::setw(10) << "hour" << std::setw(8) << "m" << std::setw(8) << "ft" << "\n";
    for (const auto &level : levels) {
        page << std::setw(10) << level.hour << std::setw(8) << level.metres;
        page << std::setw(8) << feet(level.metres) << "\n";
    }
    return page.str();
}
