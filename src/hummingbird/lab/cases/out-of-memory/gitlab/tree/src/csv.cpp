#include "tidewatch.h"

std::vector<std::string> tidewatch::fields(const std::string &line) {
    std::vector<std::string> found(1);
    for (int at = 0; at < line.size(); ++at) {
        if (line[at] == ',') found.emplace_back();
        else found.back() += line[at];
    }
    return found;
}
