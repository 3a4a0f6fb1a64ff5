// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the files that vgpud reads. The first byte says as what the rest is read. What was read and is
// written again must say the same.
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "tests/fuzz/fuzz_bytes.h"
#include "tests/scratch_dir.h"
#include "vgpud/calendar/calendar_keeper.h"
#include "vgpud/calendar/overlay.h"
#include "vgpud/config/kept_settings.h"
#include "vgpud/config/read_config.h"
#include "vgpud/history/history.h"
#include "vgpud/registry/definition_text.h"
#include "vgpud/state/state_files.h"
#include "vgpud/tenants/tenants.h"
#include "vgpud/tenants/users.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

void Must(bool is_so) {
  if (!is_so) std::abort();
}

const fs::path& Scratch() {
  static const ScratchDir made;
  static const fs::path path = made.path();
  return path;
}

void Put(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

void ReadConfiguration(std::string_view text) {
  const fs::path path = Scratch() / "vgpud.toml";
  Put(path, text);
  const std::vector<std::string> command_line{"--config=" + path.string()};
  const auto told = ReadConfig(command_line);
  if (!told) return Must(!told.error().context.empty());
  const Reload again = PlanReload(*told, *ReadConfig(command_line));
  Must(again.now.empty() && again.at_restart.empty());
}

void ReadDefinition(std::string_view text) {
  const auto definition = ParseDefinition(text);
  if (!definition) return Must(!definition.error().error.empty());
  const std::string written = ToText(*definition);
  const auto again = ParseDefinition(written);
  Must(again && ToText(*again) == written);
}

void ReadLiveSettings(std::string_view text) {
  const auto live = ReadLive(std::string(text));
  Must(ReadLive(WriteLive(live)) == live);
  for (const WithLive& with : {ApplyLive({}, {}, live), ApplyLive({}, {{"gpu.base_slice_us", "2000"}}, live)})
    Must(CheckChange({}, {with.settings, {}}, Ns{0}).has_value());
}

void ReadCalendar(std::string_view text) {
  Calendar calendar;
  for (const std::string_view line : LinesOf(text)) {
    const size_t before = calendar.size();
    if (!SetInCalendar(&calendar, line)) Must(calendar.size() == before);
  }
  std::tm time{};
  for (time.tm_wday = 0; time.tm_wday < 7; ++time.tm_wday)
    for (time.tm_hour = 0; time.tm_hour < 24; time.tm_hour += 5) Must(PatchOf(WantedAt(calendar, time)).has_value());
  for (const Period& period : calendar) Must(!period.When().empty());
}

void ReadOverlay(std::string_view text) {
  const Overlay overlay = Overlay::Read(text);
  Must(Overlay::Read(Overlay::Write(overlay.held())).held() == overlay.held());
  SettingValues before;
  for (const auto& [key, held] : overlay.held()) before[key] = held.before;
  (void)PatchOf(before);
}

void ReadTenants(std::string_view text) {
  Tenants tenants;
  Tenant site;
  Users users;
  for (const std::string_view line : LinesOf(text)) {
    (void)SetInTenant(&tenants, line);
    (void)SetInSite(&site, line);
    (void)SetInUsers(&users, line);
  }
  (void)CheckAccess({.users = users, .others = May::kLook}, {"team-a"});
  Host host;
  for (const ResourceRow& row : kResourceRows) host.all[row.resource] = row.most;
  tenants.push_back(site);
  for (const Tenant& tenant : tenants) {
    const Quota quota = InForce(tenant, host);
    Amounts most;
    for (const ResourceRow& row : kResourceRows) {
      if (const auto& limit = quota.together[row.resource]) most[row.resource] = *limit;
      Must(!ShowAmount(row, most[row.resource]).empty());
    }
    Must(!WhyNotTogether(tenant, quota, {}, most));
  }
}

// A directory of such files, as it may be after a crash.
void ReadStateFiles(std::string_view text) {
  const fs::path directory = Scratch() / "state";
  fs::remove_all(directory);
  fs::create_directory(directory);
  fs::permissions(directory, fs::perms::owner_all);
  FuzzBytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  static constexpr const char* kNames[] = {"a.json", "b.json", ".json", "a.json.new", ".a.json.new", "-", "x.json~"};
  while (!bytes.empty()) {
    const fs::path path = directory / bytes.Of(kNames);
    const auto some = bytes.Take(bytes.Byte());
    Put(path, {reinterpret_cast<const char*>(some.data()), some.size()});
    if (bytes.Chance(4)) ::truncate(path.c_str(), bytes.Raw<uint16_t>() * off_t{2});
  }
  auto files = StateFiles::Open(directory, "files", "--state-dir");
  if (!files) return;
  const auto all = (*files)->ReadAll(".json");
  if (!all) return;
  for (const StateFiles::File& file : *all) {
    if (!file.text) continue;
    Must((*files)->Replace(file.name, *file.text) && (*files)->Remove(file.name));
  }
  Must((*files)->ReadAll(".json").has_value());
}

// What a whole history is.
const std::string& Image() {
  static const std::string image = [] {
    const fs::path path = Scratch() / "whole.db";
    {
      auto history = History::Open(path);
      CHECK(history.has_value());
      std::vector<History::Vf> vfs;
      for (int i = 0; i < 20; ++i) {
        History::Vf vf;
        vf.uuid = "00000000-0000-0000-0000-00000000000" + std::to_string(i);
        vf.name = "vf-" + std::to_string(i);
        vf.usage.account.received_ns = vf.usage.account.slices = 1000;
        vf.destroyed = i % 2 == 0;
        vf.tenant = i % 3 == 0 ? "team-a" : "";
        vfs.push_back(vf);
      }
      for (int64_t day = 20'000; day < 20'003; ++day) CHECK((*history)->Write(vfs, {}, day * 24 * 60 * 60).has_value());
    }
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }();
  return image;
}

// The history with bytes changed here and there.
void ReadHistory(std::string_view text) {
  std::string image = Image();
  FuzzBytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  while (!bytes.empty()) {
    const size_t at = bytes.Raw<uint32_t>() % image.size();
    for (const uint8_t byte : bytes.Take(1 + bytes.Byte() % 16))
      if (at + 1 < image.size()) image[at] = static_cast<char>(byte);
  }
  const fs::path path = Scratch() / "usage.db";
  for (const char* rest : {"", "-wal", "-shm"}) fs::remove(path.string() + rest);
  Put(path, image);
  auto history = History::Open(path, 1000);
  if (!history) return Must(!history.error().context.empty());
  const auto known = (*history)->ReadKnown(10);
  (void)(*history)->ReadGpu();
  (void)(*history)->Report("2024-01-01", "2026-01-01", 10);
  (void)(*history)->Write(known ? *known : std::vector<History::Vf>(), {}, 20'003 * int64_t{24} * 60 * 60);
}

constexpr void (*kReaders[])(std::string_view) = {&ReadConfiguration, &ReadDefinition, &ReadLiveSettings, &ReadCalendar,
                                                  &ReadOverlay,       &ReadTenants,    &ReadStateFiles,   &ReadHistory};

}  // namespace
}  // namespace vgpud::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vgpud;
  if (size == 0) return 0;
  SetLogSink([](std::optional<LogLevel>, std::string_view, std::string_view) { return true; });
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  daemon::kReaders[data[0] % std::size(daemon::kReaders)](text);
  return 0;
}
