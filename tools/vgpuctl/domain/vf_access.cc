// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/vf_access.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "tools/libvirt/confined_user.h"
#include "tools/libvirt/held_state.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/create_body.h"
#include "vgpud/model/api.h"
#include "vgpud/model/knobs.h"

namespace vgpud::tools {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr const char* kUnnamed = "vgpud0";  // libvirt names it when the domain starts
constexpr const char* kProfiles = "/etc/apparmor.d/libvirt/";

// null: vgpud has none of that name.
tl::expected<CtlJson, int> Find(const Contact& contact, const std::string& vf) {
  const auto listed = Ask(contact, "GET", "/v1/vfs");
  if (!listed) return tl::unexpected(listed.error());
  for (const CtlJson& each : listed->json.value("vfs", CtlJson::array()))
    if (Text(each, "name") == vf) return each;
  return CtlJson();
}

// The same; one that is being destroyed is waited for, as long as --timeout says.
tl::expected<CtlJson, int> FindSettled(const Contact& contact, const std::string& vf) {
  const TimePoint end = Now() + contact.timeout;
  for (;;) {
    auto found = Find(contact, vf);
    if (!found || found->is_null() || Text(*found, "state") != "closing" || Now() > end) return found;
    std::this_thread::sleep_for(kLookAgain);
  }
}

tl::unexpected<int> Refuse(const std::string& why) { return tl::unexpected(Complain(kExitRefused, why)); }

tl::expected<void, int> CheckFree(const Hostdev& hostdev, const CtlJson& vf) {
  if (vf.value("client_connected", false))
    return Refuse(
        fmt::format("VF {} is in use by another virtual machine: stop that one, or take another VF", hostdev.vf));
  if (!hostdev.settings.empty() && !vf.value("transient", false))
    return Refuse(
        fmt::format("VF {} should be made for this domain, and one of that name is there already, which somebody made "
                    "to stay: name it without a profile, or another one",
                    hostdev.vf));
  const std::string state = Text(vf, "state");
  if (state != "ready" && state != "paused")
    return Refuse(fmt::format("VF {} is {}{} (see: vgpuctl show {})", hostdev.vf, state,
                              Text(vf, "reason").empty() ? "" : ": " + Text(vf, "reason"), hostdev.vf));
  return {};
}

// As vgpud wants it; null: a domain that was never given to libvirt.
CtlJson Owner(const DomainId& domain) {
  if (domain.name.empty() || domain.uuid.empty()) return {};
  return {{"domain", domain.name}, {"domain_uuid", domain.uuid}};
}

// The request that makes it.
tl::expected<CtlJson, int> BodyOf(const Hostdev& hostdev) {
  NewVf wanted;
  wanted.name = hostdev.vf;
  wanted.transient = true;
  for (const auto& [name, value] : hostdev.settings) {
    if (name == "profile") wanted.profile = value;
    if (name == "tenant") wanted.tenant = value;
    if (name == "vram") wanted.vram = value;
    if (name == "host-memory") wanted.host_memory = value;
    for (const auto& knob : control::Knobs())
      if (knob.per_vf && knob.option == name) wanted.knobs[knob.field] = value;
  }
  return CreateBody(wanted);
}

tl::expected<void, int> Make(const Contact& contact, const Hostdev& hostdev, const DomainId& domain) {
  auto body = BodyOf(hostdev);
  if (!body) return tl::unexpected(body.error());
  if (const CtlJson owner = Owner(domain); !owner.is_null()) {
    body->update(owner);
    (*body)["ends_with_domain"] = true;
  }
  const auto made = Ask(contact, "POST", "/v1/vfs", *body);
  if (!made) return tl::unexpected(made.error());
  return {};
}

// The socket's owner becomes `user`; nobody but that one and root may open it.
tl::expected<void, int> Give(const std::string& socket, uid_t user) {
  const UniqueFd fd(::open(socket.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat now {};
  if (fd.get() < 0 || ::fstat(fd.get(), &now) != 0 || !S_ISSOCK(now.st_mode))
    return Refuse(fmt::format("{} is not a socket of vgpud: is --runtime-dir right?", socket));
  if (now.st_uid == user) return {};
  // An O_PATH file has no fchmod of its own.
  const std::string path = fmt::format("/proc/self/fd/{}", fd.get());
  if (::chmod(path.c_str(), 0600) != 0 || ::fchownat(fd.get(), "", user, static_cast<gid_t>(-1), AT_EMPTY_PATH) != 0)
    return Refuse(fmt::format("{} can't be given to user {}, who runs QEMU: {} (this has to run as root)", socket, user,
                              std::make_error_code(static_cast<std::errc>(errno)).message()));
  return {};
}

tl::expected<void, int> WriteNew(const std::string& path, const std::string& text, mode_t mode) {
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  {
    const UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() >= 0 && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::fchmod(fd.get(), mode) == 0 && ::rename(beside.c_str(), path.c_str()) == 0)
      return {};
  }
  const std::string why = std::make_error_code(static_cast<std::errc>(errno)).message();
  ::unlink(beside.c_str());
  return tl::unexpected(Complain(kExitFailed, fmt::format("{} can't be written: {}", path, why)));
}

}  // namespace

Places PlacesOf(const Contact& contact) {
  return {contact.runtime_dir.empty() ? control::RuntimeDirOfClient() : contact.runtime_dir};
}

tl::expected<void, int> PutHeldState(const Places& places) {
  struct stat now {};
  if (::lstat(places.HeldState().c_str(), &now) == 0 && S_ISREG(now.st_mode) && (now.st_mode & 0777) == 0444) return {};
  return WriteNew(places.HeldState(), HeldStateImage(), 0444);
}

tl::expected<void, int> CheckWanted(const Contact& contact, const std::vector<Hostdev>& hostdevs) {
  for (const Hostdev& hostdev : hostdevs) {
    if (hostdev.settings.empty()) continue;
    auto body = BodyOf(hostdev);
    if (!body) return tl::unexpected(body.error());
    if (hostdev.vf.empty()) (*body)["name"] = kUnnamed;
    const auto answer = AskIfServed(contact, "POST", "/v1/vfs?dry_run=1&queue=1", *body);
    if (!answer) return tl::unexpected(answer.error());
  }
  return {};
}

tl::expected<void, int> PrepareVf(const Contact& contact, const Hostdev& hostdev, const DomainId& domain,
                                  std::optional<uid_t> user) {
  const auto vf = FindSettled(contact, hostdev.vf);
  if (!vf) return tl::unexpected(vf.error());
  if (vf->is_null() && hostdev.settings.empty())
    return Refuse(fmt::format("vgpud has no VF {}: make it (vgpuctl create {}), or say profile='1/4' in the domain",
                              hostdev.vf, hostdev.vf));
  if (!vf->is_null())
    if (const auto fits = CheckFree(hostdev, *vf); !fits) return fits;
  const bool is_made = !hostdev.settings.empty();
  if (is_made && !vf->is_null())
    if (const auto done = ReleaseVf(contact, hostdev); !done) return done;
  if (is_made) {
    if (const auto done = Make(contact, hostdev, domain); !done) return done;
  } else if (const CtlJson owner = Owner(domain); !owner.is_null()) {
    const auto noted = Ask(contact, "POST", fmt::format("/v1/vfs/{}/domain", hostdev.vf), owner);
    if (!noted) return tl::unexpected(noted.error());
  }
  if (!user) return {};
  const auto given = Give(PlacesOf(contact).Socket(hostdev.vf), *user);
  if (!given) (void)ReleaseVf(contact, hostdev);
  return given;
}

tl::expected<void, int> GiveVf(const Contact& contact, const Hostdev& hostdev, uid_t user) {
  return Give(PlacesOf(contact).Socket(hostdev.vf), user);
}

tl::expected<void, int> ReleaseVf(const Contact& contact, const Hostdev& hostdev) {
  const auto vf = FindSettled(contact, hostdev.vf);
  if (!vf) return tl::unexpected(vf.error());
  if (vf->is_null()) return {};
  if (!hostdev.settings.empty()) {
    if (!vf->value("transient", false)) return {};  // somebody else's
    const auto gone = Ask(contact, "DELETE", "/v1/vfs/" + hostdev.vf);
    if (!gone) return tl::unexpected(gone.error());
    return {};
  }
  if (const auto noted = Ask(contact, "DELETE", fmt::format("/v1/vfs/{}/domain", hostdev.vf)); !noted)
    return tl::unexpected(noted.error());
  const Places places = PlacesOf(contact);
  struct stat directory {};
  if (::stat(places.runtime_dir.c_str(), &directory) != 0) return {};
  return Give(places.Socket(hostdev.vf), directory.st_uid);
}

tl::expected<void, int> PutRules(const XmlNode& domain, const Note& note, const Places& places) {
  const std::string profile = AppArmorProfile(domain);
  if (profile.empty()) return {};
  const std::string path = kProfiles + profile;
  std::ifstream file(path);
  if (!file) return {};  // libvirt has removed it, or AppArmor is off
  std::stringstream text;
  text << file.rdbuf();
  const auto changed = WithRules(text.str(), note, places);
  if (!changed) return Refuse(fmt::format("{}: {}", path, changed.error().context));
  return *changed == text.str() ? tl::expected<void, int>{} : WriteNew(path, *changed, 0644);
}

}  // namespace vgpud::tools
