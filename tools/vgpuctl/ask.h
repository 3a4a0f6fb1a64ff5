// SPDX-License-Identifier: Apache-2.0
// One question to the daemon and its answer, as all subcommands need it. For their sources only: it brings the whole
// JSON library.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "tools/vgpuctl/chunked.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/knobs.h"

namespace vgpud::tools {

struct Answer {
  std::string raw;
  CtlJson json;
};
// Why a command cannot do what it is for.
struct Failure {
  int code = kExitFailed;  // of the process
  std::string text;        // one line
  std::string field = {};  // of the request that vgpud refused
};
// Says it on stderr, in one line; returns its code. After ComplainInJson() the line is an object: apiVersion, error (of
// code 0: warning), exit_code, field?
int Complain(const Failure& failure);
// Of the whole process; before anything else.
void ComplainInJson();
int Complain(int code, const std::string& text);
// A 2xx answer, or why there is none. With contact.wait_for_daemon it also waits until
// somebody serves the socket. `body` null: none.
tl::expected<Answer, Failure> TryToAsk(const Contact& contact, const char* method, const std::string& path,
                                       const CtlJson& body = {});
// The same; an error is the exit code after saying what went wrong.
tl::expected<Answer, int> Ask(const Contact& contact, const char* method, const std::string& path,
                              const CtlJson& body = {});
// The same; nothing, and nothing said, when nobody serves the socket.
tl::expected<std::optional<Answer>, int> AskIfServed(const Contact& contact, const char* method,
                                                     const std::string& path, const CtlJson& body = {});
// The same for answers that are not JSON; errors of the daemon always are.
tl::expected<std::string, int> AskForText(const Contact& contact, const std::string& path);
// An answer of any length: a 2xx one goes to `sink` as it comes. With `contact.follow` it may come slowly.
tl::expected<void, int> AskForStream(const Contact& contact, const std::string& path, const BodySink& sink);
// Is `name` one part of a path as it stands? Names of VFs and GPUs are.
bool CanBeInPath(const std::string& name);
// With --if-revision, if that is given.
std::string WithRevision(const CtlArgs& args, std::string path);
// To stdout; an exit code.
int PrintRaw(const std::string& raw);
// A field of an answer; 0 or empty if it is not there.
uint64_t Number(const CtlJson& object, const char* key);
std::string Text(const CtlJson& object, const char* key);

}  // namespace vgpud::tools
