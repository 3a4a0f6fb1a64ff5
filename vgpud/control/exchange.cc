// SPDX-License-Identifier: Apache-2.0
// One request on its way: its answer, whole or in pieces.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>

#include <utility>

#include "base/check.h"
#include "vgpud/control/control.h"
#include "vgpud/control/json.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kLookForClientEvery = std::chrono::seconds{1};
constexpr const char* kJson = "application/json";

bufferevent* StreamOf(evhttp_request* request) {
  return evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
}

}  // namespace

void Control::Exchange::StopLooking() { client_.reset(); }

void Control::Exchange::Later(Ns delay, std::function<void()> then) {
  later_ = control_.loop_.Timer([this, then = std::move(then)] {
    const auto keep = shared_from_this();
    later_.reset();
    if (request_ != nullptr) then();
  });
  later_->Arm(delay);
}

// The text goes to libevent as it is: a copy would take up to twice as much memory.
void Control::Exchange::Answer(int status, std::string text, const char* type) {
  gone_ = nullptr;
  StopLooking();
  if (request_ == nullptr) return;
  if (!Owes(text.capacity())) {
    status = HttpStatus(ErrorKind::kUnavailable);
    type = kJson;
    text = ToJson(ApiError{ErrorKind::kUnavailable, shares().WhyNoMemory(who_), {}});
  }
  evhttp_request* const request = std::exchange(request_, nullptr);
  memory_.reset();
  (void)shares().Answered(who_, text.size());
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
  evbuffer* body = evbuffer_new();
  CHECK(body != nullptr);
  auto* const kept = new std::string(std::move(text));
  evbuffer_add_reference(
      body, kept->data(), kept->size(),
      [](const void*, size_t, void* text_of_body) { delete static_cast<std::string*>(text_of_body); }, kept);
  evhttp_send_reply(request, status, nullptr, body);
  evbuffer_free(body);
}

void Control::Exchange::BreakOff(const ApiError& error) {
  if (request_ == nullptr) return;
  if (source_ == nullptr) return Answer(HttpStatus(error.kind), ToJson(error));
  control_.door_.Dismiss(StreamOf(request_));
}

bool Control::Exchange::Owes(size_t bytes) {
  if (memory_ == nullptr || *memory_ == nullptr) return true;
  (*memory_)->yields = [&door = control_.door_, stream = StreamOf(request_), holds = memory_.get()] {
    holds->reset();
    door.Dismiss(stream);
  };
  return shares().HasMemory(*memory_, bytes);
}

void Control::Exchange::Charge(Ns spent) {
  if (!who_.privileged) control_.pacer_.Charge(who_.name, spent);
}

void Control::Exchange::Wait(std::function<void()> gone) {
  if (request_ == nullptr) return gone();
  bufferevent* const stream = StreamOf(request_);
  control_.door_.Waits(stream);
  gone_ = std::move(gone);
  // libevent does not listen to a client whose request it has.
  client_ = control_.loop_.OnReadable(bufferevent_getfd(stream), [this] { LookForClient(); });
}

void Control::Exchange::LookForClient() {
  const auto keep = shared_from_this();
  client_->Pause();
  const int fd = bufferevent_getfd(StreamOf(request_));
  // The client has sent its next request, which libevent reads after this one is answered. OnReadable does not tell of
  // a client that leaves after that.
  if (!HasHungUp(fd)) return Later(kLookForClientEvery, [this] { LookForClient(); });
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
  Answer(503, "");
}

void Control::Exchange::Stream(const char* type, Source next) {
  StreamLate(type, [next = std::move(next)](const Deliver& deliver) {
    std::string piece;
    const bool more = next(&piece);
    deliver(std::move(piece), more);
  });
}

void Control::Exchange::StreamLate(const char* type, LateSource next) {
  if (request_ == nullptr) return;
  evhttp_add_header(evhttp_request_get_output_headers(request_), "Content-Type", type);
  evhttp_send_reply_start(request_, 200, nullptr);
  source_ = std::move(next);
  self_ = shared_from_this();
  AskForPiece();
}

void Control::Exchange::StreamOn(const char* type, LateSource next) {
  if (request_ == nullptr) return;
  control_.door_.Waits(StreamOf(request_));
  StreamLate(type, std::move(next));
}

void Control::Exchange::AskForPiece() {
  const auto keep = shared_from_this();  // the last piece ends it while its source runs
  source_([weak = weak_from_this()](const std::string& piece, bool more) {
    if (const auto self = weak.lock(); self != nullptr && self->request_ != nullptr) self->SendPiece(piece, more);
  });
}

void Control::Exchange::SendPiece(const std::string& piece, bool more) {
  (void)Owes(piece.size());  // of which there are few, and none is long
  rest_ = shares().Answered(who_, piece.size());
  evbuffer* buffer = evbuffer_new();
  CHECK(buffer != nullptr);
  evbuffer_add(buffer, piece.data(), piece.size());
  if (more) {
    evhttp_send_reply_chunk_with_cb(request_, buffer, &Exchange::OnTaken, this);
  } else {
    evhttp_send_reply_chunk(request_, buffer);
    evhttp_send_reply_end(std::exchange(request_, nullptr));
  }
  evbuffer_free(buffer);
  if (!more) self_.reset();
}

void Control::Exchange::OnTaken(evhttp_connection*, void* self) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  (void)exchange.Owes(0);
  if (exchange.rest_ <= Ns{0}) return exchange.AskForPiece();
  exchange.Later(exchange.rest_, [&exchange] { exchange.AskForPiece(); });
}

void Control::Exchange::GiveUp() {
  evhttp_request* request = std::exchange(request_, nullptr);
  StopLooking();
  later_.reset();
  turn_.reset();
  memory_.reset();
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
  // A request that was not answered to its end and has lost its connection is left to us; otherwise the connection
  // frees it.
  if (request != nullptr && evhttp_request_get_connection(request) == nullptr) evhttp_request_free(request);
  self_.reset();
}

}  // namespace vgpud::daemon
