// SPDX-License-Identifier: Apache-2.0
// vgpuctl hook: what libvirt calls before a domain starts and after it has ended (libvirt's "hooks for specific system
// management"), as /etc/libvirt/hooks/qemu.d/vgpud DOMAIN OPERATION SUB-OPERATION EXTRA, with the domain's XML at
// standard input. It never asks libvirt, which waits for it; it asks vgpud, and one question without an answer ends it.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "tools/libvirt/confined_user.h"
#include "tools/libvirt/native.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/vf_access.h"

namespace vgpud::tools {
namespace {

int Prepare(const CtlArgs& args, const XmlNode& domain, const Note& note) {
  const auto exit = [](const tl::expected<void, int>& done) { return done ? int{kExitOk} : done.error(); };
  int status = kExitOk;
  size_t ready = 0;
  for (; ready < note.hostdevs.size() && status == kExitOk; ++ready)
    if (note.hostdevs[ready].managed) status = exit(PrepareVf(args, note.hostdevs[ready], IdOf(domain), std::nullopt));
  if (status != kExitOk) --ready;  // the last one has undone itself
  if (status == kExitOk && !note.is_native) status = exit(PutHeldState(PlacesOf(args)));
  if (status == kExitOk) return kExitOk;
  for (size_t i = 0; i < ready; ++i)
    if (note.hostdevs[i].managed) (void)ReleaseVf(args, note.hostdevs[i]);
  return status;
}

// Who runs QEMU is known only now. Where libvirt does not say it, that is whoever runs this.
int Start(const CtlArgs& args, const XmlNode& domain, const Note& note) {
  const uid_t user = QemuUser(domain).value_or(::geteuid());
  for (const Hostdev& each : note.hostdevs)
    if (each.managed)
      if (const auto given = GiveVf(args, each, user); !given) return given.error();
  if (note.is_native) return kExitOk;
  const auto put = PutRules(domain, note, PlacesOf(args));
  return put ? kExitOk : put.error();
}

int Release(const CtlArgs& args, const XmlNode& domain, const Note& note) {
  for (const Hostdev& each : note.hostdevs)
    if (each.managed)
      if (const auto released = ReleaseVf(args, each); !released) return released.error();
  if (note.is_native) return kExitOk;
  const auto without = PutRules(domain, {}, PlacesOf(args));
  return without ? kExitOk : without.error();
}

int RefuseMove(const CtlArgs& args, const XmlNode&, const Note& note) {
  return Complain(kExitRefused,
                  fmt::format("{} has VF {}, whose state does not come along when a guest is migrated, saved or "
                              "restored: shut it down and start it there, or detach the VF before",
                              args.words[0], note.hostdevs[0].vf));
}

constexpr struct {
  const char* operation;
  const char* sub_operation;
  int (*run)(const CtlArgs&, const XmlNode&, const Note&);
} kOperations[] = {{"prepare", "begin", &Prepare},
                   {"start", "begin", &Start},
                   {"release", "end", &Release},
                   {"migrate", "begin", &RefuseMove},
                   {"restore", "begin", &RefuseMove}};

int Install(const CtlArgs& args) {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string program(path, size > 0 ? static_cast<size_t>(size) : 0);
  const std::string runtime_dir = PlacesOf(args).runtime_dir;
  if ((program + runtime_dir).find('\'') != std::string::npos || program.empty())
    return Complain(kExitUsage,
                    "vgpuctl or the runtime directory has a ' in its path: that can't be written into a script");
  const std::string file = args.hooks_dir + "/vgpud";
  std::error_code ignored;  // then the file can't be written either
  std::filesystem::create_directories(args.hooks_dir, ignored);
  const std::string script = fmt::format(
      "#!/bin/sh\n# Makes vgpud's VFs ready for domains that have them.\n"
      "exec '{}' --runtime-dir '{}' hook \"$@\"\n",
      program, runtime_dir);
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0755));
  if (fd.get() < 0 || ::write(fd.get(), script.data(), script.size()) != static_cast<ssize_t>(script.size()))
    return Complain(kExitFailed, fmt::format("{} can't be written (this has to run as root)", file));
  fmt::print("{} written: restart libvirtd (or virtqemud), which looks for hooks when it starts\n", file);
  return kExitOk;
}

}  // namespace

int CmdHook(const CtlArgs& args) {
  if (args.install) return Install(args);
  if (args.words.size() < 3)
    return Complain(kExitUsage, "hook takes DOMAIN OPERATION SUB-OPERATION EXTRA, as libvirt gives them, or --install");
  for (const auto& row : kOperations) {
    if (args.words[1] != row.operation || args.words[2] != row.sub_operation) continue;
    const auto text = ReadText("-");
    if (!text) return text.error();
    // Most domains are none of ours, and nothing of ours may stand in their way.
    const bool has_note = text->find(kOurSpace) != std::string::npos;
    if (!has_note && text->find("vfio-user") == std::string::npos) return kExitOk;
    const auto document = ReadDomain(*text, args.words[0]);
    if (!document) return document.error();
    const auto note = has_note ? ReadNote(document->root) : ReadNative(document->root, PlacesOf(args));
    if (!note) return Explain(args.words[0], note.error());
    return note->hostdevs.empty() ? kExitOk : row.run(args, document->root, *note);
  }
  return kExitOk;
}

}  // namespace vgpud::tools
