// SPDX-License-Identifier: Apache-2.0
// vgpuctl --host: the same command on another host, by ssh.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace vgpud::tools {

// What ssh runs: the arguments of this vgpuctl without --host and its value, each quoted for the shell there. Empty:
// `host` is no name of a host. ssh gives up a host that does not let it in, or falls silent, within `timeout`; the
// vgpuctl there has its own.
std::vector<std::string> RemoteCommand(const std::string& host, const std::vector<std::string>& arguments,
                                       std::chrono::milliseconds timeout);

// Becomes ssh; returns only an exit code, after saying why it could not.
int RunOnHost(const std::string& host, std::chrono::milliseconds timeout, int argc, char** argv);

}  // namespace vgpud::tools
