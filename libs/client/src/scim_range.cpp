// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_range.hpp>

#include <ranges>

namespace tidegate::TIDEGATE_ABI::client {

static_assert(std::ranges::input_range<scim_range>);

auto to_request(walk_request const& wanted, scim_query const& query) -> request {
  request out{.url = wanted.url, .fields = query.fields};
  out.fields.push_back({"Accept", std::string(scim::scim_json)});
  return out;
}

auto scim_range::next() -> result<std::optional<json::value>, scim_error> {
  for (;;) {
    TIDEGATE_TRY(auto const step, walk_.next());
    if (auto const* const resource = std::get_if<json::value const*>(&step)) {
      return **resource;
    }
    auto const* const wanted = std::get_if<walk_request>(&step);
    if (wanted == nullptr) {
      return std::nullopt;
    }
    auto const answer = via_->send(to_request(*wanted, walk_.query())).get();
    if (answer) {
      walk_.take(answer->status, answer->body);
    } else {
      walk_.take(answer.error());
    }
  }
}

auto scim_range::iterator::operator++() -> iterator& {
  if (value_ && !*value_) {
    value_.reset();
    return *this;
  }
  auto got = of_->next();
  if (!got) {
    value_.emplace(failure(std::move(got).error()));
  } else if (*got) {
    value_.emplace(**std::move(got));
  } else {
    value_.reset();
  }
  return *this;
}

}  // namespace tidegate::TIDEGATE_ABI::client
