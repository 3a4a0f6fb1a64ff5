// SPDX-License-Identifier: Apache-2.0
// vgpuctl --host: the same command on another host, by ssh.
#pragma once

#include <string>
#include <vector>

namespace vgpud::tools {

// What ssh runs: the arguments of this vgpuctl without --host and its value, each quoted for the shell there. Empty:
// `host` is no name of a host.
std::vector<std::string> RemoteCommand(const std::string& host, const std::vector<std::string>& arguments);

// Becomes ssh; returns only an exit code, after saying why it could not.
int RunOnHost(const std::string& host, int argc, char** argv);

}  // namespace vgpud::tools
