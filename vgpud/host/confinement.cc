// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/confinement.h"

#include <fmt/core.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>

#include "base/exec_link.h"
#include "base/jail/capabilities.h"
#include "base/log.h"
#include "base/sanitizer.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

constexpr int kPatienceMs = 10'000;
// Status of vgpud-exec --check-confinement (gpu/exec_main.cc).
constexpr char kWatchable[] = "exit 0";
constexpr char kNotWatchable[] = "exit 20";

// Does it work? The error says what does not. Else: can its jail be watched?
Result<bool> Try(const std::string& exec_program, const VfConfinement& confinement) {
  Child::Spec spec;
  spec.program = exec_program;
  spec.arguments = {"vgpud-exec"};
  for (auto& argument : ExecArguments().Add(ExecOption::kCheckConfinement).Add(ExecOption::kVf, "check").Take())
    spec.arguments.push_back(std::move(argument));
  for (auto& argument : confinement.ArgumentsFor(VfId{0})) spec.arguments.push_back(std::move(argument));
  spec.confinement = confinement.kind;
  spec.user = confinement.UserOf(VfId{0});
  Child child = TRY(Child::Spawn(spec));
  pollfd ended{child.pidfd(), POLLIN, 0};
  if (::poll(&ended, 1, kPatienceMs) != 1) return Fail(std::errc::timed_out, "a confined process did not end in time");
  const auto ending = child.Reap();
  if (ending && ending->text == kWatchable) return true;
  if (ending && ending->text == kNotWatchable) return false;
  return Fail(std::errc::operation_not_permitted,
              fmt::format("a confined process ended with {}", ending ? ending->text : "no status"));
}

bool IsRoot() { return ::geteuid() == 0; }

}  // namespace

std::vector<std::string> VfConfinement::ArgumentsFor(VfId vf) const {
  std::vector<std::string> arguments = {fmt::format("--confinement={}", kConfinementNames[static_cast<size_t>(kind)])};
  // Behind a user namespace it is that user from the start.
  if (own_users && kind != Confinement::kUserNamespace) arguments.push_back(fmt::format("--user={}", UserOf(vf)));
  return arguments;
}

Result<VfConfinement> FindConfinement(const std::string& exec_program, uid_t first_user) {
  VfConfinement best;
  if (kSanitizerBuild) {
    best.why_not_better = "this is a build with a sanitizer";
    return best;
  }
  std::string why_not;
  for (const Confinement kind :
       {Confinement::kUserNamespace, Confinement::kNamespaces, Confinement::kUserOnly, Confinement::kNothing}) {
    const bool needs_root = kind == Confinement::kNamespaces || kind == Confinement::kUserOnly;
    if (needs_root && !IsRoot()) continue;
    best.kind = kind;
    best.own_users = IsRoot() && kind != Confinement::kNothing;
    best.first_user = first_user;
    const auto watch = Try(exec_program, best);
    if (watch) {
      best.watch = *watch;
      best.why_not_better = why_not;
      return best;
    }
    why_not += fmt::format("{}{}: {}", why_not.empty() ? "" : "; ", kConfinementNames[static_cast<size_t>(kind)],
                           watch.error().context);
  }
  return Fail(std::errc::operation_not_permitted, fmt::format("{} does not run: {}", exec_program, why_not));
}

Protections ProtectionsOf(const VfConfinement& c) {
  const bool user_namespace = c.kind == Confinement::kUserNamespace;
  const bool namespaces = user_namespace || c.kind == Confinement::kNamespaces;
  const std::string sanitizer = kSanitizerBuild ? c.why_not_better : "";
  const auto row = [](const char* name, bool in_force, const std::string& why_not) {
    return Protection{name, in_force, in_force ? "" : why_not};
  };
  const std::string no_namespaces = fmt::format("this host lets vgpud make none: {}", c.why_not_better);
  return {
      row("own-user", c.own_users, "vgpud does not run as root: its VFs have its own user"),
      row("user-namespace", user_namespace, no_namespaces),
      row("other-namespaces", namespaces, no_namespaces),
      row("empty-root", namespaces, no_namespaces),
      row("no-capabilities", !kSanitizerBuild, sanitizer),
      row("system-call-filter", !kSanitizerBuild, sanitizer),
      row("watched-system-calls", c.watch,
          "this kernel does not let a filter be watched (Linux 5.9 and later do, unless something around vgpud is "
          "watched "
          "already): an executor that has been taken over can map all memory of its own guest"),
  };
}

Result<void> GiveUpCapabilities(const VfConfinement& confinement, bool low_port) {
  // What is not in force costs no capability: kUserNamespace needs none to make namespaces.
  const bool admin = confinement.kind == Confinement::kNamespaces;
  constexpr int kNone = CAP_KILL;
  TRY(KeepCapabilities({
      CAP_KILL,                                 // ends processes of the users of its VFs
      CAP_SETUID, CAP_SETGID,                   // gives its VFs users of their own
      CAP_SYS_NICE,                             // SCHED_FIFO of the scheduler thread, precedence of who has the GPU
      admin ? CAP_SYS_ADMIN : kNone,            // namespaces where an ordinary user may not make them
      low_port ? CAP_NET_BIND_SERVICE : kNone,  // --metrics-listen
  }));
  LOG(kInfo, "capabilities={}", EffectiveCapabilities());
  return {};
}

}  // namespace vgpud::daemon
