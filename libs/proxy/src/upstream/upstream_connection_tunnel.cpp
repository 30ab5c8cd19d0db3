// SPDX-License-Identifier: Apache-2.0
//
// An upstream connection after a 101.
#include "upstream/upstream_connection.hpp"
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

void upstream_connection::take_upgrade(std::string_view rest) {
  std::string const octets(rest);  // what the client has sent already is read over it
  phase_ = phase::tunnel;
  cancel();  // the tunnel has its own time
  if (!user_->upstream_upgraded(worker_.response)) {
    fail(upstream_failure::malformed);
    return;
  }
  if (phase_ == phase::closed) {
    return;
  }
  note_head();
  server_->note_answer(worker_.loop.now());
  (void)std::exchange(in_.text, {});  // with its buffer
  if (!octets.empty()) {
    take_octets(octets);
  }
}

void upstream_connection::take_octets(std::string_view bytes) {
  if (user_ == nullptr) {
    return;  // they are not waited for any more
  }
  user_->upstream_body(bytes, bytes.size());
  if (user_ != nullptr) {
    user_->flush_client();
  }
  if (user_ != nullptr && user_->client_is_full()) {
    paused_ = true;
  }
}

void upstream_connection::end_sending() {
  phase_ = phase::finishing;
  flush();
}

void upstream_connection::leave_tunnel() {
  user_ = nullptr;
  server_->leave();
  set_deadline(pool_.target().settings->idle_timeout);
  end_sending();
}

/// The server sends no more. It may still read when it ended `in_order`; else the connection is of
/// no use, though the server has not failed: it has answered.
void upstream_connection::tunnel_has_ended(bool in_order) {
  if (in_order && user_ != nullptr) {
    paused_ = true;
    user_->upstream_ended();
    return;
  }
  auto* const user = std::exchange(user_, nullptr);
  if (user != nullptr) {
    server_->leave();
  }
  close();
  if (user != nullptr) {
    user->upstream_failed(upstream_failure::closed, {});
  }
}

}  // namespace tidegate::gateway
