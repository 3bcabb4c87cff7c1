// The phases of all constituents, worked out while compiling: the station's computer is slow.
#include "tidewatch.h"
#include <array>

namespace {
template <std::size_t Ticks> struct Phases {
    std::array<std::uint64_t, Ticks> at{};
    constexpr Phases() {
        for (std::size_t tick = 0; tick < Ticks; ++tick) at[tick] = tick * Ticks % 3600;
    }
};

constexpr Phases<200000> lunar;
constexpr Phases<200001> solar;
constexpr Phases<200002> elliptic;
constexpr Phases<200003> diurnal;
}  // namespace

std::uint64_t tidewatch::phase_at(std::uint64_t tick) {
    auto at = tick % 200000;
    return lunar.at[at] + solar.at[at] + elliptic.at[at] + diurnal.at[at];
}
