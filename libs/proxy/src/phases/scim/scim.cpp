// SPDX-License-Identifier: Apache-2.0
#include "phases/scim/scim.hpp"

#include "phases/exchange.hpp"

#include <new>

namespace tidegate::gateway {

auto scim_phase::too_long() const -> scim_answer {
  auto answer = scim_error_answer({413, scim::scim_type::none,
                                   "The body is larger than the " +
                                       std::to_string(request_.content_octets_max()) +
                                       " bytes that are allowed."});
  set_accepted_type(answer, request_.accept);
  return answer;
}

auto scim_phase::refusal_by_length(wire::body_framing framing) const -> std::optional<scim_answer> {
  bool const is_too_long = framing.kind == wire::body_kind::content_length &&
                           framing.length > request_.content_octets_max();
  return is_too_long ? std::optional(too_long()) : std::nullopt;
}

auto scim_phase::take_content(std::string_view framed) -> std::optional<scim_answer> {
  while (!framed.empty() && !decoder_.done()) {
    auto const fed = decoder_.feed(framed);
    if (request_.content.size() + fed.content.size() > request_.content_octets_max()) {
      return too_long();
    }
    request_.content.append(fed.content);
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;  // what is broken was refused when it was read from the client
    }
    framed.remove_prefix(fed.consumed);
  }
  return std::nullopt;
}

void scim_phase::ask(std::shared_ptr<scim_phase> const& self, scim_service& service,
                     engine::loop& loop, bool has_time) {
  auto request = std::move(self->request_);
  self->asked_octets_ = request.content.size();
  self->owner_->count_held();
  service.handle(std::move(request), has_time,
                 engine::on_loop(loop, [phase = std::weak_ptr(self)](scim_answer answer) {
                   auto const there = phase.lock();
                   if (!there || there->owner_ == nullptr) {
                     return;
                   }
                   auto* const client = there->owner_->client();
                   try {
                     there->owner_->respond(std::move(answer));
                   } catch (std::bad_alloc const&) {
                     client->give_up();
                     throw;
                   }
                 }));
}

}  // namespace tidegate::gateway
