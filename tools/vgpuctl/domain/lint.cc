// SPDX-License-Identifier: Apache-2.0
// vgpuctl lint
#include "tools/libvirt/lint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/libvirt/domain.h"
#include "tools/libvirt/native.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/host_facts.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

int Report(const CtlArgs& args, const std::vector<Finding>& findings) {
  CtlJson list = CtlJson::array();
  for (const Finding& each : findings) {
    if (args.json)
      list.push_back({{"id", each.id}, {"problem", each.problem}, {"fix", each.fix}, {"can_fix", each.can_fix}});
    else
      fmt::print("{}: {}: {} (fix: {}{})\n", args.name, each.id, each.problem, each.fix,
                 each.can_fix ? "; --fix does it" : "");
  }
  if (args.json) (void)PrintData(args.view, CtlJson{{"findings", list}});
  return findings.empty() ? kExitOk : kExitDiffers;
}

// Judges and, with --fix, puts right; `write` gets the new text.
template <class Write>
int Judge(const CtlArgs& args, XmlDocument document, const Libvirt* libvirt, const Write& write) {
  const Places places = PlacesOf(args);
  // A hostdev as an administrator writes it is judged as what it becomes; one that libvirt has or would write, as it
  // is.
  const bool is_native = libvirt != nullptr || IsInLibvirtsWords(document.root);
  const auto compile = [&](XmlNode domain) {
    if (is_native) return tl::expected<XmlNode, int>(std::move(domain));
    const auto done = Compile(domain, places);
    return done ? tl::expected<XmlNode, int>(std::move(domain)) : tl::unexpected(Explain(args.name, done.error()));
  };
  auto compiled = compile(document.root);
  if (!compiled) return compiled.error();
  HostFacts facts = FindFacts(args, *compiled);
  const XmlNode* name = document.root.Child("name");
  if (libvirt != nullptr) {
    const auto others = libvirt->Others(name == nullptr ? "" : name->Inside());
    if (!others) return Explain(args.name, others.error());
    for (const auto& [other, text] : *others)
      if (const auto parsed = ParseXml(text, other))
        for (const std::string& vf : VfsOf(parsed->root, places)) facts.vfs_of_others.emplace(vf, other);
  }
  auto findings = Lint(*compiled, places, facts);
  bool can_fix = false;
  for (const Finding& each : findings) can_fix = can_fix || each.can_fix;
  if (!args.fix || !can_fix) return Report(args, findings);
  Fix(document.root, places);
  if (const int done = write(WriteXml(document)); done != kExitOk) return done;
  compiled = compile(document.root);
  return compiled ? Report(args, Lint(*compiled, places, facts)) : compiled.error();
}

int Replace(const std::string& path, const std::string& text) {
  struct stat now {};
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  const UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() >= 0 && ::stat(path.c_str(), &now) == 0 && ::fchmod(fd.get(), now.st_mode & 0777) == 0 &&
      ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::rename(beside.c_str(), path.c_str()) == 0)
    return kExitOk;
  const std::string why = std::make_error_code(static_cast<std::errc>(errno)).message();
  ::unlink(beside.c_str());
  return Complain(kExitFailed, fmt::format("{} can't be written: {}; it is as it was", path, why));
}

}  // namespace

int CmdLint(const CtlArgs& args) {
  if (IsFile(args.name)) {
    if (args.fix && args.name == "-") return Complain(kExitUsage, "--fix needs a file that can be written, not -");
    const auto text = ReadText(args.name);
    if (!text) return text.error();
    auto document = ReadDomain(*text, args.name);
    if (!document) return document.error();
    return Judge(args, std::move(*document), nullptr,
                 [&](const std::string& fixed) { return Replace(args.name, fixed); });
  }
  const auto libvirt = ConnectTo(args);
  if (!libvirt) return libvirt.error();
  const auto domain = FindDomain(*libvirt, args.name);
  if (!domain) return domain.error();
  auto document = ConfigOf(*domain, args.name);
  if (!document) return document.error();
  return Judge(args, std::move(*document), &*libvirt, [&](const std::string& fixed) {
    const auto defined = libvirt->Define(fixed);
    return defined ? kExitOk : Explain(args.name, defined.error());
  });
}

}  // namespace vgpud::tools
