#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tidewatch {

struct Constituent { std::string name; double speed; double amplitude; double phase; };
struct Station { std::string name; double mean; std::vector<Constituent> parts; };
struct Level { double hour; double metres; };

double radians(double degrees);
double hours_since(int year, int day, double hour);
double hour_of(std::uint64_t tick);
double feet(double metres);
std::vector<std::string> fields(const std::string &line);
Station harbour();
std::vector<Constituent> main_constituents();
double height(const Station &station, double hour);
std::vector<Level> levels(const Station &station, double from, int count);
bool too_high(const Level &level, double limit);
std::vector<Level> forecast(const Station &station, int count);
std::string report(const std::vector<Level> &levels);
std::uint64_t phase_at(std::uint64_t tick);

}  // namespace tidewatch
