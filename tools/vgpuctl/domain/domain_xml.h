// SPDX-License-Identifier: Apache-2.0
// Domains as text and as trees, for the subcommands that work on them.
#pragma once

#include <string>

#include "tools/libvirt/xml.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/domain/domain.h"

namespace vgpud::tools {

// A path, "-" or NAME.xml, not the name of a domain.
bool IsFile(const std::string& name);
// All functions: an exit code after saying why not.
tl::expected<std::string, int> ReadText(const std::string& path);
tl::expected<XmlDocument, int> ReadDomain(const std::string& text, const std::string& what);
tl::expected<XmlDocument, int> ConfigOf(const Domain& domain, const std::string& name);
tl::expected<XmlDocument, int> LiveOf(const Domain& domain, const std::string& name);
tl::expected<Libvirt, int> ConnectTo(const CtlArgs& args);
tl::expected<Domain, int> FindDomain(const Libvirt& libvirt, const std::string& name);
// Says the error of somebody who was asked for `name`; returns its exit code.
int Explain(const std::string& name, const Error& error);

}  // namespace vgpud::tools
