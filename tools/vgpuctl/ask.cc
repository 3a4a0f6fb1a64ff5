// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/ask.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "tools/vgpuctl/http_client.h"
#include "vgpud/host/let_in.h"
#include "vgpud/model/api.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

constexpr std::chrono::milliseconds kLookForDaemonEvery{20};
constexpr std::chrono::milliseconds kPatienceForNames{1'000};
constexpr int kNotFound = 404;
// vgpud shows a sign of life to followers every 5 s.
constexpr std::chrono::milliseconds kPatienceOfFollowers{20'000};

bool g_complain_in_json = false;

std::string ObjectOf(const Failure& failure) {
  CtlJson object{{"apiVersion", control::kApiVersion}, {failure.code == kExitOk ? "warning" : "error", failure.text}};
  if (failure.code != kExitOk) object["exit_code"] = failure.code;
  if (!failure.field.empty()) object["field"] = failure.field;
  return object.dump(-1, ' ', true, CtlJson::error_handler_t::replace);
}

int ExitCodeOf(int http_status) {
  static constexpr struct {
    int status;
    int exit;
  } kCodes[] = {{400, kExitUsage},   {413, kExitUsage},   {404, kExitNotFound},
                {403, kExitRefused}, {409, kExitRefused}, {504, kExitTimedOut}};
  for (const auto& code : kCodes)
    if (code.status == http_status) return code.exit;
  return kExitFailed;
}

Result<HttpReply> Request(const Contact& contact, const std::string& socket, const char* method,
                          const std::string& path, const std::string& body, const BodySink& sink) {
  const TimePoint end = Now() + contact.timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Now());
    const auto patience = std::max(left, std::chrono::milliseconds{1});
    auto reply = sink ? HttpDownload(socket, path, sink, patience, contact.follow ? kPatienceOfFollowers : patience)
                      : HttpRequest(socket, method, path, body, patience);
    if (reply || reply.error().code != std::errc::connection_refused || !contact.wait_for_daemon ||
        left < kLookForDaemonEvery)
      return reply;
    std::this_thread::sleep_for(kLookForDaemonEvery);
  }
}

std::string SocketOf(const Contact& contact) {
  return control::ControlSocketPath(contact.runtime_dir.empty() ? control::RuntimeDirOfClient() : contact.runtime_dir);
}

// Who lets this user in, and how.
std::string NextStepToAccess(const std::string& socket) {
  const auto id = daemon::GroupLetIn(socket);
  if (!id || *id == 0) return "only root and the user whose vgpud it is may: ask who administers this host";
  const group* const named = ::getgrgid(*id);
  const std::string group = named != nullptr ? named->gr_name : fmt::format("{}", *id);
  const passwd* const user = ::getpwuid(::geteuid());
  return fmt::format("join the group {} (as root: adduser {} {}), then log in again", group,
                     user != nullptr ? user->pw_name : "USER", group);
}

// The name in the path of a request about one VF; empty: it is about something else.
std::string VfIn(const std::string& path) {
  for (const std::string_view prefix : {"/v1/vfs/", "/v1/stats?vf="})
    if (path.starts_with(prefix))
      return path.substr(prefix.size(), path.find_first_of("/?&", prefix.size()) - prefix.size());
  return "";
}

// Asks vgpud for the names of all VFs, and returns ": did you mean guest-a?" where `path` names a VF that is not among
// them and is like one; else an empty text. Waits for a second at most: the answer that matters is there already.
std::string SimilarVf(const Contact& contact, const std::string& path) {
  const std::string wrong = VfIn(path);
  if (wrong.empty()) return "";
  Contact shortly = contact;
  shortly.timeout = std::min(contact.timeout, kPatienceForNames);
  const auto reply = Request(shortly, SocketOf(contact), "GET", "/v1/vfs", "", nullptr);
  if (!reply || !reply->ok()) return "";
  const CtlJson answer = CtlJson::parse(reply->body, nullptr, false);
  if (!answer.is_object()) return "";
  std::vector<std::string> names;
  for (const CtlJson& vf : answer.value("vfs", CtlJson::array())) names.push_back(Text(vf, "name"));
  // Then something else was not found.
  if (std::find(names.begin(), names.end(), wrong) != names.end()) return "";
  const auto nearest = control::Nearest(wrong, names);
  return nearest.empty() ? "" : ": " + control::DidYouMeanOneOf(nearest);
}

// Why there is no answer at all.
Failure WhyUnanswered(const Contact& contact, const Error& error) {
  if (contact.follow && error.code == std::errc::connection_reset)
    return {kExitUnreachable, "vgpud has ended the connection: it was stopped, or other users need the place"};
  if (error.code == std::errc::timed_out)
    return {kExitTimedOut, error.context + "; it may still do it (longer: --timeout)"};
  if (error.code == std::errc::permission_denied)
    return {kExitRefused,
            fmt::format("you may not use this vgpud: {}; {}", error.context, NextStepToAccess(SocketOf(contact)))};
  if (error.code == std::errc::connection_refused)
    return {kExitUnreachable,
            fmt::format("no vgpud reachable{}: {} (start it, or name its directory with --runtime-dir or ${}{})",
                        contact.wait_for_daemon ? fmt::format(" within {} ms", contact.timeout.count()) : "",
                        error.context, control::kRuntimeDirVariable,
                        contact.wait_for_daemon ? "" : "; --timeout TIME waits until it is up")};
  return {kExitFailed, error.context};
}

// The body of a 2xx answer.
tl::expected<std::string, Failure> BodyOf(const Contact& contact, Result<HttpReply> reply, const std::string& path) {
  if (!reply) return tl::unexpected(WhyUnanswered(contact, reply.error()));
  if (reply->ok()) return std::move(reply->body);
  const CtlJson body = CtlJson::parse(reply->body, nullptr, false);
  const std::string error = Text(body, "error") + (reply->status == kNotFound ? SimilarVf(contact, path) : "");
  return tl::unexpected(Failure{ExitCodeOf(reply->status),
                                error.empty() ? fmt::format("vgpud answered {}", reply->status) : error,
                                Text(body, "field")});
}

// The body of a 2xx answer, unless `sink` had it.
tl::expected<std::string, Failure> AskRaw(const Contact& contact, const char* method, const std::string& path,
                                          const std::string& body, const BodySink& sink = nullptr) {
  return BodyOf(contact, Request(contact, SocketOf(contact), method, path, body, sink), path);
}

tl::expected<Answer, Failure> Read(tl::expected<std::string, Failure> raw) {
  if (!raw) return tl::unexpected(raw.error());
  Answer answer{std::move(*raw), {}};
  answer.json = CtlJson::parse(answer.raw, nullptr, false);
  if (answer.json.is_discarded()) return tl::unexpected(Failure{kExitFailed, "vgpud answered without JSON"});
  return answer;
}

// What went wrong is said.
template <class T>
tl::expected<T, int> Said(tl::expected<T, Failure> answer) {
  return std::move(answer).map_error([](const Failure& failure) { return Complain(failure); });
}

std::string TextOf(const CtlJson& body) { return body.is_null() ? std::string() : body.dump(); }

}  // namespace

void ComplainInJson() { g_complain_in_json = true; }

int Complain(const Failure& failure) {
  fmt::print(stderr, "{}\n", g_complain_in_json ? ObjectOf(failure) : "vgpuctl: " + failure.text);
  return failure.code;
}

int Complain(int code, const std::string& text) { return Complain(Failure{code, text}); }

tl::expected<Answer, Failure> TryToAsk(const Contact& contact, const char* method, const std::string& path,
                                       const CtlJson& body) {
  return Read(AskRaw(contact, method, path, TextOf(body)));
}

tl::expected<Answer, int> Ask(const Contact& contact, const char* method, const std::string& path,
                              const CtlJson& body) {
  return Said(TryToAsk(contact, method, path, body));
}

tl::expected<std::optional<Answer>, int> AskIfServed(const Contact& contact, const char* method,
                                                     const std::string& path, const CtlJson& body) {
  auto reply = Request(contact, SocketOf(contact), method, path, TextOf(body), nullptr);
  if (!reply && reply.error().code == std::errc::connection_refused) return std::nullopt;
  auto answer = Said(Read(BodyOf(contact, std::move(reply), path)));
  if (!answer) return tl::unexpected(answer.error());
  return std::move(*answer);
}

tl::expected<std::string, int> AskForText(const Contact& contact, const std::string& path) {
  return Said(AskRaw(contact, "GET", path, {}));
}

tl::expected<void, int> AskForStream(const Contact& contact, const std::string& path, const BodySink& sink) {
  const auto answer = Said(AskRaw(contact, "GET", path, {}, sink));
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

bool CanBeInPath(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

std::string WithRevision(const CtlArgs& args, std::string path) {
  if (args.if_revision)
    path += fmt::format("{}if_revision={}", path.find('?') == std::string::npos ? '?' : '&', *args.if_revision);
  return path;
}

int PrintRaw(const std::string& raw) {
  return std::fwrite(raw.data(), 1, raw.size(), stdout) == raw.size() ? kExitOk : kExitFailed;
}

uint64_t Number(const CtlJson& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

std::string Text(const CtlJson& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace vgpud::tools
