// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/flags.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/compute_capability.h"
#include "base/text/numbers.h"
#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/model/api.h"
#include "vgpud/model/knobs.h"
#include "vgpud/model/nearest.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kMostGpus = 64;
constexpr uint64_t kPreemptTimeoutUs = 10'000;
// As long as a kernel that can't be stopped may take.
constexpr uint64_t kCudaPreemptTimeoutUs = 2'000'000;

// Empty: it may be the value of the knob, or it is no number, which the flag itself refuses.
std::string WhyNotKnob(Knob knob, const std::string& text) {
  if (text.starts_with('-')) return fmt::format("{} is out of range: allowed is {}", text, AllowedRange(RowOf(knob)));
  const auto value = ParseInteger<uint64_t>(text);
  if (!value || *value == KnobOf(DefaultOptions(), knob)) return {};
  const auto checked = CheckKnob(knob, *value);
  return checked ? std::string() : checked.error().context;
}

// Groups have no weight of their own at start: vgpuctl set-gpu.
void AddKnobs(CLI::App& app, std::map<Knob, uint64_t>& knobs) {
  for (const KnobRow& row : Knobs()) {
    if (row.per_vf || row.knob == Knob::kGroupWeight) continue;
    std::string option(row.name);
    std::replace(option.begin(), option.end(), '_', '-');
    uint64_t& value = knobs.emplace(row.knob, KnobOf(DefaultOptions(), row.knob)).first->second;
    app.add_option("--" + option, value, fmt::format("{} ({})", row.about, AllowedRange(row)))
        ->check([knob = row.knob](const std::string& text) { return WhyNotKnob(knob, text); })
        ->capture_default_str();
  }
}

// Where it listens and writes.
void AddPlaces(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("daemon");
  app.add_option("--runtime-dir", flags.config.runtime_dir,
                 "Directory of the sockets (default: $VGPUD_RUNTIME_DIR, else /run/vgpud for root, else "
                 "$XDG_RUNTIME_DIR/vgpud)");
  app.add_option("--state-dir", flags.config.state_dir,
                 "Directory of what outlives the daemon: VFs and the usage history (default: $VGPUD_STATE_DIR, else "
                 "/var/lib/vgpud for the daemon of "
                 "/run/vgpud, else state in the runtime directory)");
  app.add_option(
         "--socket-group", flags.config.socket_group,
         "Group whose members may open the control socket, beside those of the file's own group (default: vgpu, "
         "where root's vgpud makes the socket and this host has the group)")
      ->check([](const std::string& name) {
        const auto known = FindGroup(name);
        return known ? std::string() : known.error().context;
      });
  app.add_option("--cdi-file", flags.config.cdi_file,
                 "File that describes all VFs as devices of containers, like /run/cdi/vgpud.json: written whenever VFs "
                 "come or go, removed when vgpud ends (docs/containers.md); default: none")
      ->check([](const std::string& path) {
        if (path.starts_with('/')) return std::string();
        return fmt::format("{} is not an absolute path (write it like /run/cdi/vgpud.json)", path);
      });
  app.add_flag("--keep-vfs", flags.config.keep_vfs,
               "VFs, their guests and programs outlive a vgpud that is killed, or ended by SIGUSR1 to be replaced: the "
               "next one goes on with them (docs/restart.md)");
  app.add_flag(
      "--client-memory", flags.config.client_memory,
      "Clients of channel sockets may bring memory of their own, files of tmpfs or hugetlbfs: for VFs that are "
      "the GPU of another vgpud (docs/cuda-backend.md)");
  app.add_option("--history-interval-ms", flags.history_interval_ms, "How often the usage history is written")
      ->check(CLI::Range(100, 60'000))
      ->capture_default_str();
  app.add_option("--trace-turns", flags.config.scheduler.trace_slices,
                 "How many turns are remembered for vgpuctl trace")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--metrics-listen", flags.config.metrics_listen,
                 "ADDRESS:PORT where anybody may read the metrics (GET /metrics), for Prometheus; default: nowhere");
  app.add_option("--outside-turns-percent", flags.config.outside_turns_percent,
                 "What all VFs together may use of the host's processors outside of their turns; one that uses more "
                 "than its part gives way to the others")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--first-vf-user", flags.config.first_vf_user,
                 "Run by root: the first of 4096 user and group numbers that nobody else has, one for each VF")
      ->check(CLI::Range(1u, 4'294'900'000u))
      ->capture_default_str();
}

void AddGpu(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("gpu");
  app.add_option(
         "--gpu", flags.config.gpu.gpu,
         "The GPU to share: soft, the built-in one; cuda, the first of NVIDIA's; cuda:ADDRESS, the one at that PCI "
         "address; or cuda:MIG-..., a MIG instance by its name (docs/cuda-backend.md)")
      ->check(&WhyNotGpu)
      ->capture_default_str();
  app.add_option("--cuda-library", flags.config.gpu.cuda_library,
                 "--gpu cuda: the driver's library (default: libcuda.so.1, where the system finds it)");
  app.add_option(
      "--cuda-channel", flags.config.gpu.cuda_channel,
      "--gpu cuda with a --cuda-library that is vgpud's own: the channel socket of the VF to run on, of another "
      "vgpud");
  app.add_option("--cuda-rung", flags.config.gpu.cuda_rung,
                 "--gpu cuda: the best way that is used to take kernels off the GPU at the end of a slice: gate waits "
                 "for them, blocks and safepoints change those whose PTX is there so that they leave "
                 "(docs/cuda-backend.md)")
      ->check(CLI::IsMember({"gate", "blocks", "safepoints"}))
      ->capture_default_str();
  app.add_flag(
      "--cuda-oversubscribe", flags.config.gpu.cuda_oversubscribe,
      "--gpu cuda: VFs may be promised more memory together than the card has. What another one needs is moved "
      "to the host and back (docs/oversubscription.md)");
  app.add_option("--soft-gpu-threads", flags.config.soft_gpu_threads,
                 "How many threads run a kernel together on the soft GPU; 0 = 1 on a host with 2 CPUs or fewer, else "
                 "half of them, at most 16")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_option(
         "--soft-gpu-capability", flags.config.soft_gpu_capability,
         "Compute capability of the soft GPU, which programs see and are compiled for: " + ListComputeCapabilities())
      ->check([](const std::string& name) {
        const auto known = FindComputeCapability(name);
        return known ? std::string() : known.error().context;
      })
      ->capture_default_str();
}

// --with-gpu NAME or NAME.KEY=VALUE
struct GpuSetting {
  std::string name;
  std::optional<FlagValue> value;  // of its key
};
Result<GpuSetting> ParseGpuSetting(const std::string& text) {
  const size_t dot = text.find('.');
  const size_t equals = text.find('=', dot == std::string::npos ? 0 : dot);
  const std::string name = text.substr(0, dot);
  if ((dot == std::string::npos) != (equals == std::string::npos))
    return Fail(std::errc::invalid_argument,
                fmt::format("\"{}\" is not NAME or NAME.KEY=VALUE (write it like gpu1.base_slice_us=4000)", text));
  const auto keys = GpuKeys();
  if (!control::IsValidName(name) || std::find(keys.begin(), keys.end(), name) != keys.end())
    return Fail(std::errc::invalid_argument,
                fmt::format("GPU name \"{}\" is not usable: 1 to {} characters a-z, 0-9 and -, the first not -, and no "
                            "key of [gpu]",
                            name, control::kMaxNameBytes));
  if (dot == std::string::npos) return GpuSetting{name, {}};
  std::string key = text.substr(dot + 1, equals - dot - 1);
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    return Fail(std::errc::invalid_argument,
                fmt::format("GPU {} has no key \"{}\": {}", name, key, control::DidYouMean(key, keys)));
  std::replace(key.begin(), key.end(), '_', '-');
  return GpuSetting{name, FlagValue{"--" + key, text.substr(equals + 1)}};
}

void AddGpus(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("gpu");
  app.add_option("--numa-node", flags.numa_node,
                 "NUMA node where the GPU is, for vgpuctl create --placement numa; -1: not known")
      ->check(CLI::Range(-1, 1023))
      ->capture_default_str();
  app.add_option(kWithGpu, flags.gpus,
                 "NAME, or NAME.KEY=VALUE: a GPU of several, key by key, like gpu1.policy=reserve. What is not said of "
                 "it is as without NAME; without any there is one GPU, soft0 (docs/gpus.md)")
      ->check([](const std::string& text) {
        const auto setting = ParseGpuSetting(text);
        if (!setting) return setting.error().context;
        return setting->value ? WhyNot(*setting->value).value_or("") : std::string();
      })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.option_defaults()->group("daemon");
  app.add_option("--placement", flags.placement,
                 fmt::format("To which GPU new VFs go that are told nothing else: {}",
                             CLI::detail::join(PlacementNames(), ", ")))
      ->check([](const std::string& name) {
        const auto known = FindPlacement(name);
        return known ? std::string() : known.error().context;
      })
      ->capture_default_str();
}

void AddProcess(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("process")->configurable(false);
  app.add_option("--config", flags.config_file,
                 "Configuration file; FILE.d/*.toml count too, in the order of their names, and flags before both "
                 "(default: /etc/vgpud/vgpud.toml for the daemon of /run/vgpud, if it is there)");
  app.add_flag("--check-config", flags.check_config,
               "Only say whether the configuration files and the flags are right");
  app.add_flag("--foreground", flags.foreground, "Stay in the foreground (the default; it never forks away)");
  app.add_option("--ready-fd", flags.config.ready_fd, "Write one byte to this file descriptor when serving")
      ->check(CLI::Range(3, 1 << 20));
  app.add_flag("--exit-with-parent", flags.exit_with_parent, "Stop when the process that started this one ends");
}

void AddPolicy(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("gpu")->configurable(true);
  app.add_option("--policy", flags.config.settings.policy,
                 "Who gets the GPU, and for how long. " + control::AboutPolicies())
      ->check([](const std::string& name) {
        const auto known = FindPolicy(name);
        return known ? std::string() : known.error().context;
      })
      ->capture_default_str();
  app.add_option("--idle", flags.idle,
                 "What happens to the turn of a VF without work: it gives it away, or it keeps it")
      ->check(CLI::IsMember({"yield", "hold"}))
      ->capture_default_str();
  AddKnobs(app, flags.knobs);
}

// How exactly slices begin and end.
void AddTiming(CLI::App& app, Flags& flags) {
  app.add_option("--finish-timeout-us", flags.finish_timeout_us,
                 "Policy relaxed: how long a kernel may take after the end of a slice before it is forced")
      ->check(CLI::Range(1'000, 60'000'000))
      ->capture_default_str();
  app.add_option(
         "--preempt-timeout-us", flags.preempt_timeout_us,
         "How long a VF may take to leave the GPU before it is forced (default: 10000; with --gpu cuda 2000000, as "
         "kernels there end their turn themselves)")
      ->check(CLI::Range(100, 10'000'000));
  app.add_option(
         "--spin-us", flags.spin,
         "How long before the end of a slice the scheduler thread stops sleeping, in microseconds; auto: as long "
         "as this host wakes it late, at most --max-spin-percent of the slice")
      ->check(CLI::IsMember({"auto"}) | CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--max-spin-percent", flags.config.scheduler.waiter.max_spin_percent,
                 "--spin-us auto: the part of one CPU that this may cost")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_flag(
      "--keep-cpu-awake", flags.config.scheduler.waiter.keep_cpu_awake,
      "Never let the scheduler thread's CPU sleep while a VF has work: slices end on time, and that CPU's idle "
      "time is used up");
  app.add_flag(
      "--take-back-alone", flags.take_back_alone,
      "Take the GPU back at the end of every slice, also of a VF that alone has work; for tests of taking it back");
  app.add_option("--fifo-priority", flags.config.scheduler.waiter.fifo_priority,
                 "SCHED_FIFO priority of the scheduler thread, 0 = ordinary")
      ->check(CLI::Range(0, 98))
      ->capture_default_str();
}

void AddBudgets(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("daemon");
  app.add_option(
         kEventBudget, flags.event_budgets,
         "KIND=NUMBER: how many events of a kind a guest may cause per second before it is slowed down; 0 = no "
         "limit. Kinds: doorbells, commands, opens, resets, bad_messages, messages, faults, interrupts, module_kib "
         "(docs/isolation.md)")
      ->check([](const std::string& budget) {
        EventBudgets some = kDefaultEventBudgets;
        const auto parsed = ParseEventBudget(budget, some);
        return parsed ? std::string() : parsed.error().context;
      })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddProfiles(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("gpu");
  app.add_option("--soft-gpu-vram", flags.soft_gpu_vram,
                 fmt::format("Memory of the soft GPU, like 16GiB: VFs have no more together, and built-in profiles are "
                             "parts of it (default: VFs may have what they want, profiles are parts of {})",
                             FormatBytes(kUsualGpuVramBytes)))
      ->check([](const std::string& text) {
        const auto bytes = ParseBytes(text);
        if (!bytes) return bytes.error().context;
        return *bytes >= control::kMinVramBytes ? std::string() : text + " is less than the smallest VF has";
      });
  app.add_option(
         kProfile, flags.profiles,
         fmt::format("NAME.KEY=VALUE: a profile for vgpuctl create --profile, key by key, like small.vram=1GiB. "
                     "Keys: {} (docs/configuration.md)",
                     CLI::detail::join(ProfileKeys(), ", ")))
      ->check([](const std::string& setting) {
        Profiles some;
        const auto set = SetInProfile(&some, setting);
        return set ? std::string() : set.error().context;
      })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// A flag that is given once for each key of each of many things, which `set` checks.
template <class Things>
void AddKeyed(CLI::App& app, const char* flag, std::vector<std::string>& given, const std::string& about,
              Result<void> (*set)(Things*, std::string_view)) {
  app.add_option(flag, given, about)
      ->check([set](const std::string& setting) {
        Things some;
        const auto done = set(&some, setting);
        return done ? std::string() : done.error().context;
      })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddTenants(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("daemon");
  AddKeyed<Tenants>(app, kTenant, flags.tenants,
                    fmt::format("NAME.KEY=VALUE: how much the VFs of a tenant may have together, key by key, like "
                                "team-a.vram=8GiB. Keys: {} (docs/tenants.md)",
                                CLI::detail::join(QuotaKeys(), ", ")),
                    &SetInTenant);
  AddKeyed<Tenant>(app, kSite, flags.site,
                   "KEY=VALUE: how much all VFs of this host may have together, or each, whoever makes them, like "
                   "priority=2. Keys: those of --tenant (docs/tenants.md)",
                   &SetInSite);
  AddKeyed<Users>(app, kUser, flags.users,
                  "NAME.may=manage, look or nothing: what a user of this host may do at the control socket; "
                  "NAME.tenant=TENANT: with the VFs of that tenant only (docs/tenants.md)",
                  &SetInUsers);
  app.add_option("--others-may", flags.others_may,
                 "What users may do at the control socket who are not named and may open it")
      ->check(CLI::IsMember({"manage", "look", "nothing"}))
      ->capture_default_str();
  AddKeyed<Calendar>(app, kCalendar, flags.calendar,
                     "NAME.from=HH:MM, NAME.to=HH:MM, NAME.days=mon-fri, NAME.vf.VF.KEY=VALUE, NAME.gpu.KEY=VALUE: "
                     "settings that hold at these hours of these days, local time (docs/calendar.md)",
                     &SetInCalendar);
}

// As CLI11 takes --flag=text.
void Give(CLI::Option& option, const FlagValue& value) {
  const bool is_switch = option.get_items_expected_max() == 0;
  if (!is_switch && value.text.empty())
    throw CLI::ArgumentMismatch::TypedAtLeast(value.flag, option.get_items_expected_min(), option.get_type_name());
  option.add_result(is_switch ? option.get_flag_value(option.get_lnames().front(), value.text) : value.text);
}

// Flags for values that are only tried.
struct TriedFlags {
  TriedFlags() { AddFlags(app, flags); }
  Flags flags;
  CLI::App app;
};

// The GPUs by name. Each begins as what is said without a name, and then its own keys count.
Result<std::vector<GpuConfig>> GpusOf(const Flags& flags) {
  std::map<std::string, std::vector<FlagValue>> own;
  for (const std::string& text : flags.gpus) {
    const GpuSetting setting = TRY(ParseGpuSetting(text));
    auto& values = own[setting.name];
    if (setting.value) values.push_back(*setting.value);
  }
  if (own.size() > kMostGpus)
    return Fail(std::errc::invalid_argument, fmt::format("{} GPUs are more than {}", own.size(), kMostGpus));
  std::vector<GpuConfig> gpus;
  for (const auto& [name, values] : own) {
    Flags one = flags;
    for (auto* of_all : {&one.gpus, &one.tenants, &one.site, &one.users, &one.calendar}) of_all->clear();
    CLI::App app;
    AddFlags(app, one);
    for (const FlagValue& value : values) PutFirst(app, value);
    if (const auto refusal = ParseFlags(app, {}))
      return Fail(std::errc::invalid_argument, fmt::format("GPU {}: {}", name, *refusal));
    auto config = ConfigOf(one);
    if (!config) return Fail(std::errc::invalid_argument, fmt::format("GPU {}: {}", name, config.error().context));
    gpus.push_back(*config);
    gpus.back().name = name;
  }
  return gpus;
}

// What is said of no GPU.
Result<void> SetOfAll(const Flags& flags, Config* config) {
  std::vector<std::string> tenants;
  for (const std::string& setting : flags.tenants) TRY(SetInTenant(&config->tenants, setting));
  for (const Tenant& tenant : config->tenants) tenants.push_back(tenant.name);
  for (const Door& door : kDoors) tenants.emplace_back(door.tenant);
  for (const std::string& setting : flags.site) TRY(SetInSite(&config->site, setting));
  for (const std::string& setting : flags.users) TRY(SetInUsers(&config->access.users, setting));
  config->access.others = TRY(FindMay(flags.others_may));
  TRY(CheckAccess(config->access, tenants));
  for (const std::string& setting : flags.calendar) TRY(SetInCalendar(&config->calendar, setting));
  std::vector<std::string> gpus;
  for (const GpuConfig& gpu : config->gpus) gpus.push_back(gpu.name);
  for (Period& period : config->calendar) {
    // One GPU has one name in a calendar.
    SettingValues settings;
    for (const auto& [key, value] : period.settings) {
      SettingKey one = key;
      if (gpus.size() == 1 && one.gpu == gpus.front()) one.gpu.clear();
      settings[one] = value;
    }
    period.settings = std::move(settings);
    if (period.settings.empty())
      return Fail(std::errc::invalid_argument, fmt::format("calendar {}: it changes nothing", period.name));
    for (const auto& [key, value] : period.settings) {
      const bool known = key.gpu.empty() || std::find(gpus.begin(), gpus.end(), key.gpu) != gpus.end();
      if (!known || (key.vf.empty() && key.gpu.empty() && gpus.size() > 1))
        return Fail(
            std::errc::invalid_argument,
            fmt::format("calendar {}: {}", period.name,
                        known
                            ? fmt::format("there are {} GPUs, say which one: gpu.NAME.{}", gpus.size(), key.field)
                            : fmt::format("there is no gpu \"{}\": {}", key.gpu, control::DidYouMean(key.gpu, gpus))));
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> GpuKeys() {
  static const std::vector<std::string> keys = [] {
    TriedFlags tried;
    std::vector<std::string> names;
    for (const CLI::Option* option : tried.app.get_options()) {
      const std::string flag = "--" + (option->get_lnames().empty() ? "" : option->get_lnames().front());
      if (!IsConfigured(*option) || option->get_group() != "gpu" || flag == kProfile || flag == kWithGpu) continue;
      names.push_back(KeyOf(*option).substr(std::string_view("gpu.").size()));
    }
    return names;
  }();
  return keys;
}

std::optional<std::string> ParseFlags(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(arguments);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

std::optional<std::string> WhyNot(const FlagValue& value) {
  static TriedFlags tried;
  CLI::Option& option = *tried.app.get_option(value.flag);
  option.clear();
  try {
    Give(option, value);
    option.run_callback();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const std::string refusal = error.what(), name = value.flag + ": ";
    return refusal.starts_with(name) ? refusal.substr(name.size()) : refusal;
  }
}

void PutFirst(CLI::App& app, const FlagValue& value) { Give(*app.get_option(value.flag), value); }

void AddFlags(CLI::App& app, Flags& flags) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  for (const auto add :
       {AddPlaces, AddGpu, AddProcess, AddPolicy, AddTiming, AddBudgets, AddProfiles, AddGpus, AddTenants})
    add(app, flags);
}

bool IsConfigured(const CLI::Option& option) {
  return option.get_configurable() && !option.get_lnames().empty() && option.get_lnames().front() != "help";
}

std::string KeyOf(const CLI::Option& option) {
  std::string name = option.get_lnames().front();
  std::replace(name.begin(), name.end(), '-', '_');
  return fmt::format("{}.{}", option.get_group(), name);
}

Result<Config> ConfigOf(const Flags& flags) {
  using std::chrono::microseconds;
  Config config = flags.config;
  config.settings.options.idle = flags.idle == "hold" ? WhenIdle::kHold : WhenIdle::kYield;
  for (const auto& [knob, value] : flags.knobs) {
    if (value == KnobOf(config.settings.options, knob)) continue;
    TRY(CheckKnob(knob, value));
    SetKnob(config.settings.options, knob, value);
  }
  config.scheduler.switcher.stays = !flags.take_back_alone;
  config.scheduler.switcher.finish_timeout = microseconds{flags.finish_timeout_us};
  config.scheduler.switcher.preempt_timeout =
      microseconds{flags.preempt_timeout_us.value_or(config.gpu.is_cuda() ? kCudaPreemptTimeoutUs : kPreemptTimeoutUs)};
  config.history_interval = std::chrono::milliseconds{flags.history_interval_ms};
  if (flags.spin != "auto") config.scheduler.waiter.spin = microseconds{std::stoul(flags.spin)};
  for (const std::string& budget : flags.event_budgets) TRY(ParseEventBudget(budget, config.event_budgets));
  if (!flags.soft_gpu_vram.empty()) config.gpu_vram_bytes = TRY(ParseBytes(flags.soft_gpu_vram));
  config.profiles = BuiltInProfiles(config.gpu_vram_bytes != 0 ? config.gpu_vram_bytes : kUsualGpuVramBytes);
  for (const std::string& setting : flags.profiles) TRY(SetInProfile(&config.profiles, setting));
  TRY(CheckChange({}, {config.settings, {}}, Ns{0}));
  config.placement = TRY(FindPlacement(flags.placement));
  if (flags.numa_node >= 0) config.numa_node = flags.numa_node;
  config.gpus = TRY(GpusOf(flags));
  if (config.gpus.empty()) config.gpus.push_back(config);
  TRY(SetOfAll(flags, &config));
  return config;
}

}  // namespace vgpud::daemon
