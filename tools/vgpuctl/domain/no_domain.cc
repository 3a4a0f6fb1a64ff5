// SPDX-License-Identifier: Apache-2.0
// domain.h where libvirt's library was not there when vgpuctl was built.
#include <thread>

#include "tools/vgpuctl/domain/domain.h"

namespace vgpud::tools {
namespace {

tl::unexpected<Error> Missing() {
  return Fail(
      std::errc::function_not_supported,
      "this vgpuctl was built without libvirt: install libvirt-dev and build it again (files work without: give one "
      "instead of a domain)");
}

}  // namespace

struct Libvirt::Handle {};
struct Domain::Handle {};

Domain::Domain(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Domain::Domain(Domain&&) noexcept = default;
Domain::~Domain() = default;
Libvirt::Libvirt(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Libvirt::Libvirt(Libvirt&&) noexcept = default;
Libvirt& Libvirt::operator=(Libvirt&&) noexcept = default;
Libvirt::~Libvirt() = default;
Result<Libvirt> Libvirt::Connect(const std::string&) { return Missing(); }
void Libvirt::UseEvents() {}
Result<Libvirt> Libvirt::ConnectToWatch(const std::string&) { return Missing(); }
bool Libvirt::IsAlive() const { return false; }
Result<std::vector<std::string>> Libvirt::RunningXml() const { return Missing(); }
void Libvirt::AwaitChange(std::chrono::milliseconds limit) { std::this_thread::sleep_for(limit); }
Result<Domain> Libvirt::Find(const std::string&) const { return Missing(); }
Result<std::string> Libvirt::Define(const std::string&) const { return Missing(); }
Result<std::string> Libvirt::Capabilities(const std::string&, const std::string&, const std::string&,
                                          const std::string&) const {
  return Missing();
}
Result<std::vector<std::pair<std::string, std::string>>> Libvirt::Others(const std::string&) const { return Missing(); }
bool Domain::IsRunning() const { return false; }
bool Domain::IsPersistent() const { return false; }
Result<std::string> Domain::LiveXml() const { return Missing(); }
Result<std::string> Domain::ConfigXml() const { return Missing(); }
Result<void> Domain::AttachDevice(const std::string&, bool, bool) const { return Missing(); }
Result<void> Domain::DetachDevice(const std::string&, bool, bool) const { return Missing(); }
Result<std::string> Domain::Monitor(const std::string&) const { return Missing(); }
Result<void> Domain::SetLiveNote(const std::string&) const { return Missing(); }

}  // namespace vgpud::tools
