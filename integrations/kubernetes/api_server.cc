// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/api_server.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace vgpud::kubernetes {
namespace {

constexpr size_t kMostBytes = 64 << 20;
constexpr size_t kMostTokenBytes = 64 << 10;
constexpr long kPatienceMs = 5000;
constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr const char* kPlaces[] = {"https://", "http://127.0.0.1:", "http://[::1]:"};

size_t Take(char* data, size_t one, size_t count, void* into) {
  auto* const body = static_cast<std::string*>(into);
  if (one * count > kMostBytes - body->size()) return 0;  // libcurl ends it then
  body->append(data, one * count);
  return one * count;
}

Result<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string token(kMostTokenBytes, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(file.gcount()));
  token.erase(token.find_last_not_of(" \r\n") + 1);
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
    return Fail(std::errc::permission_denied, fmt::format("{} has no token", path));
  return token;
}

// What the server says is wrong: a Status object.
std::string Reason(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("message") || !json["message"].is_string()) return "";
  return ": " + json["message"].get<std::string>();
}

struct Freed {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class Headers {
 public:
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_.get(), line.c_str());
    if (longer == nullptr) return;
    (void)list_.release();
    list_.reset(longer);
  }
  curl_slist* get() const { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, Freed> list_;
};

}  // namespace

ApiServer::Place ApiServer::OfPod() {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) return {};
  const bool is_v6 = std::string_view(host).find(':') != std::string_view::npos;
  return {.url = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port),
          .token_file = fmt::format("{}/token", kAccount),
          .ca_file = fmt::format("{}/ca.crt", kAccount)};
}

Result<ApiServer> ApiServer::At(Place place) {
  for (const char* const each : kPlaces)
    if (place.url.rfind(each, 0) == 0) return ApiServer(std::move(place));
  return Fail(
      std::errc::invalid_argument,
      fmt::format("\"{}\" is no API server: https://HOST:PORT, or http:// and an address of this machine", place.url));
}

Result<std::string> ApiServer::Ask(const std::string& method, const std::string& path, const Body* body) const {
  const std::unique_ptr<CURL, Freed> curl(curl_easy_init());
  if (!curl) return Fail(std::errc::not_enough_memory, "curl_easy_init");
  Headers headers;
  headers.Add("Accept: application/json");
  if (!place_.token_file.empty()) headers.Add("Authorization: Bearer " + TRY(ReadToken(place_.token_file)));
  std::string answer;
  char problem[CURL_ERROR_SIZE] = "";
  const std::string url = place_.url + path;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, kPatienceMs);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, problem);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  if (!place_.ca_file.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, place_.ca_file.c_str());
  if (body != nullptr) {
    headers.Add(fmt::format("Content-Type: {}", body->type));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->text.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body->text.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    return Fail(std::errc::io_error,
                fmt::format("{} {}: {}", method, url, problem[0] != '\0' ? problem : curl_easy_strerror(code)));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status < 200 || status > 299)
    return Fail(std::errc::operation_not_permitted, fmt::format("{} {}: {}{}", method, url, status, Reason(answer)));
  return answer;
}

Result<std::string> ApiServer::Get(const std::string& path) const { return Ask("GET", path, nullptr); }

Result<void> ApiServer::Patch(const std::string& path, const std::string& body) const {
  const Body patch{"application/merge-patch+json", body};
  TRY(Ask("PATCH", path, &patch));
  return {};
}

Result<void> ApiServer::Change(const std::string& method, const std::string& path, const std::string& body) const {
  const Body object{"application/json", body};
  TRY(Ask(method, path, body.empty() ? nullptr : &object));
  return {};
}

}  // namespace vgpud::kubernetes
