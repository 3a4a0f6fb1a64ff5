// SPDX-License-Identifier: Apache-2.0
// vgpuctl define, dumpxml, edit
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/native.h"
#include "tools/vgpuctl/domain/vf_access.h"

namespace vgpud::tools {
namespace {

// The text of a domain with <hostdev type='vfio-user'>, as libvirt understands it.
tl::expected<std::string, int> Compiled(const CtlArgs& args, const std::string& text, const std::string& what) {
  auto document = ReadDomain(text, what);
  if (!document) return tl::unexpected(document.error());
  if (!document->root.IsElement("domain"))
    return tl::unexpected(
        Complain(kExitUsage, fmt::format("{}: this is a <{}>, not a <domain>", what, document->root.name)));
  const auto done = Compile(document->root, PlacesOf(args));
  if (!done) return tl::unexpected(Explain(what, done.error()));
  return WriteXml(*document);
}

tl::expected<std::string, int> Shown(XmlDocument document, const std::string& what) {
  const auto done = Decompile(document.root);
  if (!done) return tl::unexpected(Explain(what, done.error()));
  return WriteXml(document);
}

// Is there nothing to compile, because this libvirt knows the element?
bool IsNativeText(const Libvirt& libvirt, const std::string& text, const std::string& what) {
  if (text.find("vfio-user") == std::string::npos) return false;
  const auto document = ParseXml(text, what);
  return document && IsNative(libvirt, document->root);
}

// What the domain asks vgpud for can be had, however many others have something now.
tl::expected<void, int> CheckVfs(const CtlArgs& args, const std::string& text, const std::string& what) {
  const auto document = ReadDomain(text, what);
  if (!document) return tl::unexpected(document.error());
  const bool has_note = text.find(kOurSpace) != std::string::npos;
  const auto note = has_note ? ReadNote(document->root) : ReadNative(document->root, PlacesOf(args));
  if (!note) return tl::unexpected(Explain(what, note.error()));
  return CheckWanted(args, note->hostdevs);
}

int DefineText(const CtlArgs& args, const std::string& text, const std::string& what) {
  if (args.print) {
    const auto compiled = Compiled(args, text, what);
    return compiled ? PrintRaw(*compiled) : compiled.error();
  }
  const auto libvirt = ConnectTo(args);
  if (!libvirt) return libvirt.error();
  const auto understood = IsNativeText(*libvirt, text, what) ? text : Compiled(args, text, what);
  if (!understood) return understood.error();
  if (const auto could = CheckVfs(args, *understood, what); !could) return could.error();
  const auto name = libvirt->Define(*understood);
  if (!name) return Explain(what, name.error());
  fmt::print("{} defined\n", *name);
  return kExitOk;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) : fd_(::mkstemps(path_, 4)) {
    is_written_ = fd_.get() >= 0 && ::write(fd_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  ~TemporaryFile() {
    if (!is_kept_) ::unlink(path_);
  }
  std::string path() const { return path_; }
  bool is_written() const { return is_written_; }
  void Keep() { is_kept_ = true; }

 private:
  char path_[32] = "/tmp/vgpuctl-XXXXXX.xml";
  UniqueFd fd_;
  bool is_written_ = false;
  bool is_kept_ = false;
};

// The user's editor; its exit status.
int RunEditor(const std::string& path) {
  std::string script = "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"", shell = "sh", dash = "-c", zero = "vgpuctl", file = path;
  char* words[] = {shell.data(), dash.data(), script.data(), zero.data(), file.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);  // which we ignore, for libvirt's library
  posix_spawnattr_t its;
  ::posix_spawnattr_init(&its);
  ::posix_spawnattr_setsigdefault(&its, &pipe);
  ::posix_spawnattr_setflags(&its, POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&child, "sh", nullptr, &its, words, environ);
  ::posix_spawnattr_destroy(&its);
  if (failed != 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int CmdDefine(const CtlArgs& args) {
  const auto text = ReadText(args.name);
  return text ? DefineText(args, *text, args.name) : text.error();
}

int CmdDumpxml(const CtlArgs& args) {
  tl::expected<XmlDocument, int> document = tl::unexpected(kExitFailed);
  if (IsFile(args.name)) {
    const auto text = ReadText(args.name);
    if (!text) return text.error();
    document = ReadDomain(*text, args.name);
  } else {
    const auto libvirt = ConnectTo(args);
    if (!libvirt) return libvirt.error();
    const auto domain = FindDomain(*libvirt, args.name);
    if (!domain) return domain.error();
    document = args.config || !domain->IsRunning() ? ConfigOf(*domain, args.name) : LiveOf(*domain, args.name);
  }
  if (!document) return document.error();
  const auto shown = Shown(std::move(*document), args.name);
  return shown ? PrintRaw(*shown) : shown.error();
}

int CmdEdit(const CtlArgs& args) {
  const auto libvirt = ConnectTo(args);
  if (!libvirt) return libvirt.error();
  const auto domain = FindDomain(*libvirt, args.name);
  if (!domain) return domain.error();
  auto document = ConfigOf(*domain, args.name);
  if (!document) return document.error();
  const auto before = Shown(std::move(*document), args.name);
  if (!before) return before.error();
  TemporaryFile file(*before);
  if (!file.is_written()) return Complain(kExitFailed, file.path() + " can't be written: is /tmp full?");
  if (RunEditor(file.path()) != 0)
    return Complain(kExitFailed, "the editor failed, nothing was changed (set $EDITOR to the one that you want)");
  const auto after = ReadText(file.path());
  if (!after) return after.error();
  if (*after == *before) {
    fmt::print("{} not changed\n", args.name);
    return kExitOk;
  }
  const int done = DefineText(args, *after, args.name);
  if (done != kExitOk) {
    file.Keep();
    (void)Complain(done, fmt::format("nothing was changed; what you wrote is in {}: put it right and vgpuctl define it",
                                     file.path()));
  }
  return done;
}

}  // namespace vgpud::tools
