// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/domain.h"

#include <fmt/core.h>
#include <signal.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "tools/libvirt/hostdev.h"
#include "tools/vgpuctl/domain/libvirt_calls.h"

namespace vgpud::tools {
using namespace libvirt_calls;  // hides the declarations of libvirt
namespace {

tl::unexpected<Error> Wrong(const std::string& what) {
  const virError* error = virGetLastError();
  const bool is_missing = error != nullptr && error->code == VIR_ERR_NO_DOMAIN;
  return Fail(is_missing ? std::errc::no_such_device : std::errc::io_error,
              fmt::format("{}: {}", what, virGetLastErrorMessage()));
}

// libvirt would print its errors itself.
void SayNothing(void*, virErrorPtr) {}

// Before anything else of libvirt: its library writes to sockets without a care for SIGPIPE, which a libvirtd that was
// killed would otherwise send to us.
Result<void> BeginLibvirt() {
  TRY(libvirt_calls::Load());
  virSetErrorFunc(nullptr, &SayNothing);
  ::signal(SIGPIPE, SIG_IGN);
  return {};
}

std::string Take(char* text) {
  std::string out = text;
  std::free(text);
  return out;
}

// Who watches has one thread.
bool g_changed = false;

void OnLifecycle(virConnectPtr, virDomainPtr, int, int, void*) { g_changed = true; }
void OnMetadata(virConnectPtr, virDomainPtr, int, const char*, void*) { g_changed = true; }

// A hanging libvirt is given up after their product, in seconds.
constexpr int kKeepAliveEvery = 3;
constexpr unsigned kKeepAliveMissed = 3;

unsigned Where(bool live, bool config) {
  constexpr unsigned kLive = VIR_DOMAIN_AFFECT_LIVE, kConfig = VIR_DOMAIN_AFFECT_CONFIG;
  return (live ? kLive : 0) | (config ? kConfig : 0);
}

constexpr int kMonitor = VIR_DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT;

}  // namespace

struct Libvirt::Handle {
  virConnectPtr connection;
  bool is_lost = false;
  std::vector<int> watched = {};
  ~Handle() {
    for (const int each : watched) virConnectDomainEventDeregisterAny(connection, each);
    virConnectUnregisterCloseCallback(connection, &OnClosed);
    virConnectClose(connection);
  }
  static void OnClosed(virConnectPtr, int, void* self) {
    static_cast<Handle*>(self)->is_lost = true;
    g_changed = true;
  }
};

struct Domain::Handle {
  virDomainPtr domain;
  ~Handle() { virDomainFree(domain); }
};

Domain::Domain(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Domain::Domain(Domain&&) noexcept = default;
Domain::~Domain() = default;
Libvirt::Libvirt(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Libvirt::Libvirt(Libvirt&&) noexcept = default;
Libvirt& Libvirt::operator=(Libvirt&&) noexcept = default;
Libvirt::~Libvirt() = default;

Result<Libvirt> Libvirt::Connect(const std::string& uri) {
  TRY(BeginLibvirt());
  virConnectPtr connection = virConnectOpen(uri.empty() ? nullptr : uri.c_str());
  if (connection == nullptr)
    return Fail(std::errc::connection_refused,
                fmt::format("no libvirt reachable{}: {} (start libvirtd, or name another with --connect)",
                            uri.empty() ? "" : " at " + uri, virGetLastErrorMessage()));
  return Libvirt(std::unique_ptr<Handle>(new Handle{connection}));
}

void Libvirt::UseEvents() {
  if (BeginLibvirt()) virEventRegisterDefaultImpl();
}

Result<Libvirt> Libvirt::ConnectToWatch(const std::string& uri) {
  TRY(libvirt_calls::Load());
  virConnectPtr connection = virConnectOpenReadOnly(uri.c_str());
  if (connection == nullptr)
    return Fail(std::errc::connection_refused,
                fmt::format("no libvirt reachable at {}: {} (--connect names another)", uri, virGetLastErrorMessage()));
  auto handle = std::unique_ptr<Handle>(new Handle{connection});
  // Drivers without a connection have nothing to keep alive.
  virConnectRegisterCloseCallback(connection, &Handle::OnClosed, handle.get(), nullptr);
  virConnectSetKeepAlive(connection, kKeepAliveEvery, kKeepAliveMissed);
  const std::pair<int, virConnectDomainEventGenericCallback> kWatched[] = {
      {VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(&OnLifecycle)},
      {VIR_DOMAIN_EVENT_ID_METADATA_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(&OnMetadata)}};
  for (const auto& [event, callback] : kWatched) {
    const int number = virConnectDomainEventRegisterAny(connection, nullptr, event, callback, nullptr, nullptr);
    if (number < 0) return Wrong("libvirt does not tell what happens to domains");
    handle->watched.push_back(number);
  }
  return Libvirt(std::move(handle));
}

bool Libvirt::IsAlive() const { return !handle_->is_lost && virConnectIsAlive(handle_->connection) == 1; }

Result<std::vector<std::string>> Libvirt::RunningXml() const {
  virDomainPtr* domains = nullptr;
  const int count = virConnectListAllDomains(handle_->connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
  if (count < 0) return Wrong("libvirt does not list its domains");
  Result<std::vector<std::string>> all = std::vector<std::string>{};
  for (int i = 0; i < count; ++i) {
    char* xml = virDomainGetXMLDesc(domains[i], 0);
    // Gone meanwhile is as good as gone before.
    const std::string text = xml != nullptr ? Take(xml) : "";
    if (xml != nullptr && all)
      all->push_back(text);
    else if (const virError* error = virGetLastError();
             xml == nullptr && all && (error == nullptr || error->code != VIR_ERR_NO_DOMAIN))
      all = Wrong("libvirt does not show a domain");
    virDomainFree(domains[i]);
  }
  std::free(domains);
  return all;
}

void Libvirt::AwaitChange(std::chrono::milliseconds limit) {
  if (!libvirt_calls::Load()) return std::this_thread::sleep_for(limit);
  bool is_over = false;
  const auto on_time = [](int, void* over) { *static_cast<bool*>(over) = true; };
  const int timer = virEventAddTimeout(static_cast<int>(limit.count()), on_time, &is_over, nullptr);
  while (timer >= 0 && !is_over && !g_changed && virEventRunDefaultImpl() == 0) {
  }
  if (timer >= 0) virEventRemoveTimeout(timer);
  g_changed = false;
}

Result<Domain> Libvirt::Find(const std::string& name) const {
  virDomainPtr domain = virDomainLookupByName(handle_->connection, name.c_str());
  if (domain == nullptr) domain = virDomainLookupByUUIDString(handle_->connection, name.c_str());
  if (domain == nullptr)
    return Fail(
        std::errc::no_such_device,
        fmt::format("libvirt has no domain {} (virsh list --all shows all; --connect names another libvirt)", name));
  return Domain(std::unique_ptr<Domain::Handle>(new Domain::Handle{domain}));
}

Result<std::string> Libvirt::Define(const std::string& xml) const {
  virDomainPtr domain = virDomainDefineXML(handle_->connection, xml.c_str());
  if (domain == nullptr) return Wrong("libvirt refuses the domain");
  std::string name = virDomainGetName(domain);
  virDomainFree(domain);
  return name;
}

Result<std::string> Libvirt::Capabilities(const std::string& emulator, const std::string& architecture,
                                          const std::string& machine, const std::string& type) const {
  const auto given = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  char* xml = virConnectGetDomainCapabilities(handle_->connection, given(emulator), given(architecture), given(machine),
                                              given(type), 0);
  if (xml == nullptr) return Wrong("libvirt does not say what domains can have");
  return Take(xml);
}

Result<std::vector<std::pair<std::string, std::string>>> Libvirt::Others(const std::string& name) const {
  virDomainPtr* domains = nullptr;
  const int count = virConnectListAllDomains(handle_->connection, &domains, 0);
  if (count < 0) return Wrong("libvirt does not list its domains");
  std::vector<std::pair<std::string, std::string>> out;
  for (int i = 0; i < count; ++i) {
    const std::string other = virDomainGetName(domains[i]);
    char* xml = other == name ? nullptr : virDomainGetXMLDesc(domains[i], 0);
    if (xml != nullptr) out.emplace_back(other, Take(xml));
    virDomainFree(domains[i]);
  }
  std::free(domains);
  return out;
}

bool Domain::IsRunning() const { return virDomainIsActive(handle_->domain) == 1; }
bool Domain::IsPersistent() const { return virDomainIsPersistent(handle_->domain) == 1; }

Result<std::string> Domain::LiveXml() const {
  char* xml = virDomainGetXMLDesc(handle_->domain, VIR_DOMAIN_XML_SECURE);
  if (xml == nullptr) return Wrong("libvirt does not show the domain");
  return Take(xml);
}

Result<std::string> Domain::ConfigXml() const {
  char* xml = virDomainGetXMLDesc(handle_->domain, VIR_DOMAIN_XML_SECURE | VIR_DOMAIN_XML_INACTIVE);
  if (xml == nullptr) return Wrong("libvirt does not show the domain");
  return Take(xml);
}

Result<void> Domain::AttachDevice(const std::string& xml, bool live, bool config) const {
  if (virDomainAttachDeviceFlags(handle_->domain, xml.c_str(), Where(live, config)) < 0)
    return Wrong("libvirt does not attach the VF");
  return {};
}

Result<void> Domain::DetachDevice(const std::string& xml, bool live, bool config) const {
  if (virDomainDetachDeviceFlags(handle_->domain, xml.c_str(), Where(live, config)) < 0)
    return Wrong("libvirt does not detach the VF");
  return {};
}

Result<std::string> Domain::Monitor(const std::string& command) const {
  char* answer = nullptr;
  if (virDomainQemuMonitorCommand(handle_->domain, command.c_str(), &answer, kMonitor) < 0)
    return Wrong("QEMU's monitor does not answer");
  std::string text = Take(answer);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("error")) {
    const auto& error = json["error"];
    return Fail(std::errc::operation_not_permitted,
                "QEMU refuses: " + (error.is_object() ? error.value("desc", std::string("no reason given")) : text));
  }
  return text;
}

Result<void> Domain::SetLiveNote(const std::string& xml) const {
  if (virDomainSetMetadata(handle_->domain, VIR_DOMAIN_METADATA_ELEMENT, xml.empty() ? nullptr : xml.c_str(), "vgpud",
                           kOurSpace, VIR_DOMAIN_AFFECT_LIVE) < 0)
    return Wrong("libvirt does not keep the domain's note");
  return {};
}

}  // namespace vgpud::tools
