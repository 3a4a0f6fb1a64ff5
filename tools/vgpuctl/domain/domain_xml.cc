// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/domain_xml.h"

#include <fmt/core.h>

#include <fstream>
#include <iostream>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

bool IsFile(const std::string& name) {
  return name == "-" || name.ends_with(".xml") || name.find('/') != std::string::npos;
}

int Explain(const std::string& name, const Error& error) {
  static constexpr struct {
    std::errc code;
    int exit;
  } kCodes[] = {{std::errc::no_such_device, kExitNotFound},
                {std::errc::connection_refused, kExitUnreachable},
                {std::errc::timed_out, kExitTimedOut},
                {std::errc::invalid_argument, kExitUsage},
                {std::errc::operation_not_supported, kExitRefused},
                {std::errc::operation_not_permitted, kExitRefused},
                {std::errc::device_or_resource_busy, kExitRefused},
                {std::errc::no_space_on_device, kExitRefused}};
  int exit = kExitFailed;
  for (const auto& row : kCodes)
    if (row.code == error.code) exit = row.exit;
  return Complain(exit, (name.empty() ? "" : name + ": ") + error.context);
}

tl::expected<std::string, int> ReadText(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return tl::unexpected(Complain(kExitUsage, fmt::format("{} can't be read (is that its name?)", path)));
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text(kMaxXmlBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return tl::unexpected(Complain(kExitUsage, path + " can't be read to its end"));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

tl::expected<XmlDocument, int> ReadDomain(const std::string& text, const std::string& what) {
  auto document = ParseXml(text, what);
  if (!document) return tl::unexpected(Explain("", document.error()));
  return std::move(*document);
}

tl::expected<XmlDocument, int> ConfigOf(const Domain& domain, const std::string& name) {
  const auto text = domain.ConfigXml();
  if (!text) return tl::unexpected(Explain(name, text.error()));
  return ReadDomain(*text, name);
}

tl::expected<XmlDocument, int> LiveOf(const Domain& domain, const std::string& name) {
  const auto text = domain.LiveXml();
  if (!text) return tl::unexpected(Explain(name, text.error()));
  return ReadDomain(*text, name);
}

tl::expected<Libvirt, int> ConnectTo(const CtlArgs& args) {
  auto libvirt = Libvirt::Connect(args.connect);
  if (!libvirt) return tl::unexpected(Explain("", libvirt.error()));
  return std::move(*libvirt);
}

tl::expected<Domain, int> FindDomain(const Libvirt& libvirt, const std::string& name) {
  auto domain = libvirt.Find(name);
  if (!domain) return tl::unexpected(Explain("", domain.error()));
  return std::move(*domain);
}

}  // namespace vgpud::tools
