// SPDX-License-Identifier: Apache-2.0
// How much of what is there once for everybody one user, one tenant or one address may have. Users see this table in
// docs/configuration.md ("Shares"); tools/check_shares.py holds both against each other.
#pragma once

#include <cstdint>

#include "vgpud/host/shares.h"

namespace vgpud::daemon::share_limits {

// The control socket, per user.
inline constexpr PlaceLimit kConnections{.what = "connections", .each = 16, .all = 512, .reserved = 64};
inline constexpr RateLimit kRequests{
    .what = "requests", .each_per_second = 20, .each_at_once = 40, .all_per_second = 500, .all_at_once = 50};
inline constexpr RateLimit kAnswerBytes{.what = "bytes of answers",
                                        .each_per_second = 4 << 20,
                                        .each_at_once = 4 << 20,
                                        .all_per_second = 8 << 20,
                                        .all_at_once = 8 << 20};
inline constexpr PlaceLimit kUntakenBytes{
    .what = "untaken bytes of answers", .each = 4 << 20, .all = 64 << 20, .idle = std::chrono::seconds{1}};
inline constexpr PlaceLimit kReports{
    .what = "reports and traces", .each = 2, .all = 48, .reserved = 16, .idle = std::chrono::seconds{5}};
inline constexpr PlaceLimit kFollowers{.what = "followers of events and logs", .each = 4, .all = 64, .reserved = 16};
// The port for metrics, per address.
inline constexpr PlaceLimit kScrapers{.what = "connections", .each = 8, .all = 32};
inline constexpr RateLimit kScrapes{
    .what = "requests", .each_per_second = 5, .each_at_once = 10, .all_per_second = 20, .all_at_once = 20};
// Per tenant, or per user where a VF has no tenant.
inline constexpr PlaceLimit kWaitingVfs{.what = "VFs that wait for room", .each = 8, .all = 64, .reserved = 16};
inline constexpr RateLimit kNewVfs{
    .what = "new VFs", .each_per_second = 1, .each_at_once = 60, .all_per_second = 10, .all_at_once = 120};
inline constexpr PlaceLimit kVfs{.what = "VFs", .each = 256, .all = 1024, .reserved = 64};
inline constexpr uint32_t kHistoryRowsPerDay = 200;
// Per VF.
inline constexpr RateLimit kLogLines{
    .what = "log lines", .each_per_second = 50, .each_at_once = 500, .all_per_second = 0, .all_at_once = 0};
// Per tenant, or per user where a VF has no tenant, or per VF of root: 18 MiB a day.
inline constexpr RateLimit kLogBytes{
    .what = "bytes of log", .each_per_second = 200, .each_at_once = 1 << 20, .all_per_second = 0, .all_at_once = 0};
// All tenants together, on the disk.
inline constexpr uint64_t kHistoryBytes = uint64_t{256} << 20;

}  // namespace vgpud::daemon::share_limits
