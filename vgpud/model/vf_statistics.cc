// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/vf_statistics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace vgpud::daemon {
namespace {

using Stats = VfStats;

template <size_t kIndex>
constexpr VfStatistic OfAccount() {
  constexpr auto kValue = kAccountStatistics[kIndex].value;
  return {kAccountStatistics[kIndex].about, [](const Stats& s) { return s.account.*kValue; },
          [](Stats& s, uint64_t v) { s.account.*kValue = v; }};
}

#define VGPUD_STATISTIC(field, ...)                                             \
  {                                                                             \
    Statistic{__VA_ARGS__}, [](const Stats& s) -> uint64_t { return s.field; }, \
        [](Stats& s, uint64_t v) { s.field = v; }                               \
  }

constexpr VfStatistic kOwn[] = {
    VGPUD_STATISTIC(debt_ns, .name = "debt_ns", .metric = "debt_seconds",
                    .help = "Overrun that the VF has not repaid yet.", .ns = true, .gauge = true),
    VGPUD_STATISTIC(work.kernels, .name = "kernels", .metric = "kernels_total",
                    .help = "Kernels finished, as the VF's executors say.", .column = "kernels"),
    VGPUD_STATISTIC(work.warp_instructions, .name = "warp_instructions", .metric = "warp_instructions_total",
                    .help = "Warp instructions executed, as the VF's executors say.", .column = "warp_instructions"),
    VGPUD_STATISTIC(work.executor_preempts, .name = "executor_preempts", .metric = "executor_preempts_total",
                    .help = "Times an executor left the GPU with work left, as it says.", .column = "executor_preempts",
                    .reported = false),
    VGPUD_STATISTIC(work.host_work_ns, .name = "host_work_ns", .metric = "host_work_seconds_total",
                    .help = "Processor time of the VF's executors for what needs no turn, as they say, since vgpud was "
                            "started.",
                    .ns = true),
    VGPUD_STATISTIC(work.module_loads, .name = "module_loads", .metric = "module_loads_total",
                    .help = "Modules that the VF's executors have loaded or refused, since vgpud was started."),
    VGPUD_STATISTIC(work.module_bytes, .name = "module_bytes", .metric = "module_bytes_total",
                    .help = "Bytes of the images of these."),
    VGPUD_STATISTIC(work.core_wait_ns, .name = "core_wait_ns", .metric = "core_wait_seconds_total",
                    .help = "Time in the VF's turns in which its executors had no processor of the host, as they say, "
                            "since vgpud was started.",
                    .ns = true),
    VGPUD_STATISTIC(work.evictions, .name = "evictions", .metric = "evictions_total",
                    .help = "Times that memory of a program of the VF was taken off the card for another VF, as its "
                            "executors say, since vgpud was started."),
    VGPUD_STATISTIC(work.evicted_bytes, .name = "evicted_bytes", .metric = "evicted_bytes_total",
                    .help = "Bytes that left the card so."),
    VGPUD_STATISTIC(work.evicting_ns, .name = "evicting_ns", .metric = "evicting_seconds_total",
                    .help = "How long that took.", .ns = true),
    VGPUD_STATISTIC(work.returned_bytes, .name = "returned_bytes", .metric = "returned_bytes_total",
                    .help = "Bytes that were brought back to the card, in the VF's own turns."),
    VGPUD_STATISTIC(work.returning_ns, .name = "returning_ns", .metric = "returning_seconds_total",
                    .help = "How long that took.", .ns = true),
    VGPUD_STATISTIC(work.movable_bytes, .name = "movable_bytes", .metric = "movable_bytes",
                    .help = "Bytes on the card that can be taken off it now.", .gauge = true),
    VGPUD_STATISTIC(work.moved_bytes, .name = "moved_bytes", .metric = "moved_bytes",
                    .help = "Bytes of the VF's memory that are in the host's memory instead of the card's now.",
                    .gauge = true),
    VGPUD_STATISTIC(conduct.bad_slots, .name = "bad_slots", .metric = "bad_slots_total",
                    .help = "States and counters of the VF's executors that cannot be, since vgpud was started."),
    VGPUD_STATISTIC(conduct.out_of_turn, .name = "out_of_turn", .metric = "out_of_turn_total",
                    .help = "Turns of others in which an executor of the VF said that it was on the GPU."),
    VGPUD_STATISTIC(conduct.muted, .name = "bell_muted", .metric = "bell_muted_total",
                    .help = "Times that the VF's executors rang so often that vgpud stopped listening."),
    VGPUD_STATISTIC(late.turns, .name = "late_turns", .metric = "late_turns_total",
                    .help = "Turns that ended more than 5 ms late, since vgpud was started. Why, as the kernel says of "
                            "the executor that left last:"),
    VGPUD_STATISTIC(late.cpu_wait_ns, .name = "late_cpu_wait_ns", .metric = "late_cpu_wait_seconds_total",
                    .help = "It was ready and had no processor.", .ns = true),
    VGPUD_STATISTIC(late.stolen_ns, .name = "late_stolen_ns", .metric = "late_stolen_seconds_total",
                    .help = "A hypervisor had taken the processor.", .ns = true),
    VGPUD_STATISTIC(late.computed_ns, .name = "late_computed_ns", .metric = "late_computed_seconds_total",
                    .help = "It computed: a long instruction.", .ns = true),
    VGPUD_STATISTIC(late.slept_ns, .name = "late_slept_ns", .metric = "late_slept_seconds_total",
                    .help = "It slept: a lock, or memory on its way.", .ns = true),
    VGPUD_STATISTIC(late.minor_faults, .name = "late_minor_faults", .metric = "late_minor_faults_total",
                    .help = "Pages that it was given meanwhile."),
    VGPUD_STATISTIC(late.major_faults, .name = "late_major_faults", .metric = "late_major_faults_total",
                    .help = "Pages that were read from disk for it meanwhile."),
    VGPUD_STATISTIC(late.left_behind, .name = "left_behind", .metric = "left_behind_total",
                    .help = "Turns that ended while an executor had no processor to leave the GPU with."),
    VGPUD_STATISTIC(late.more_time, .name = "more_time_to_leave", .metric = "more_time_to_leave_total",
                    .help = "Turns in which an executor got more time to leave, as the host had taken some from it."),
    VGPUD_STATISTIC(channels.offs, .name = "channels_off", .metric = "channels_off_total",
                    .help = "Times that an executor of the VF did not leave the GPU by itself and its channels were "
                            "switched off, since vgpud was started."),
    VGPUD_STATISTIC(channels.newcomers, .name = "channels_held", .metric = "channels_held_total",
                    .help = "Channels that were made while their executor was switched off, and held."),
    VGPUD_STATISTIC(channels.refusals, .name = "channels_refused", .metric = "channels_refused_total",
                    .help = "Executors whose channels could not be switched off or on any more."),
};

template <size_t... kAccount, size_t... kOthers>
constexpr auto Join(std::index_sequence<kAccount...>, std::index_sequence<kOthers...>) {
  return std::array{OfAccount<kAccount>()..., kOwn[kOthers]...};
}
constexpr auto kStatistics =
    Join(std::make_index_sequence<std::size(kAccountStatistics)>(), std::make_index_sequence<std::size(kOwn)>());

#define VGPUD_HISTOGRAM(name, metric, help, field)                                                            \
  {                                                                                                           \
    name, metric, help, name "_histogram", [](const Stats& s) -> const LatencyHistogram& { return s.field; }, \
        [](Stats& s) -> LatencyHistogram& { return s.field; }                                                 \
  }

constexpr VfHistogram kHistograms[] = {
    VGPUD_HISTOGRAM("drain", "drain_seconds", "From taking the GPU back until the VF's executors were off it.",
                    latency.drain),
    VGPUD_HISTOGRAM("channels_off_took", "channels_off_seconds",
                    "From wanting an executor's channels off until they were.", latency.channels_off),
    VGPUD_HISTOGRAM("overrun", "turn_overrun_seconds", "Overrun of each turn that used up its slice.", times.overrun),
    VGPUD_HISTOGRAM("turn_wait", "turn_wait_seconds",
                    "Wait before each turn: since the VF's last turn, or since it was seen with work.",
                    times.turn_wait),
    VGPUD_HISTOGRAM("wake_wait", "wake_wait_seconds", "The same, only before turns that followed a time without work.",
                    times.wake_wait),
};

}  // namespace

std::span<const VfStatistic> VfStatistics() { return kStatistics; }
std::span<const VfHistogram> VfHistograms() { return kHistograms; }

void AddFigures(VfStats& total, const VfStats& more) {
  for (const VfStatistic& row : kStatistics) {
    if (row.about.gauge && !row.about.worst) continue;
    const uint64_t a = row.get(total), b = row.get(more);
    row.set(total, row.about.worst ? std::max(a, b) : a + b);
  }
  for (const VfHistogram& histogram : kHistograms) histogram.edit(total).Merge(histogram.get(more));
}

}  // namespace vgpud::daemon
