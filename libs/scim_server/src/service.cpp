// SPDX-License-Identifier: Apache-2.0
//
// From a request to the part of the service that answers it, and from there to the directory.
#include <tidegate/scim_server/service.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim_server/call.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

/// More content of requests than this does not wait for the directory: the next one gets 503.
constexpr std::size_t request_octets_max = std::size_t{64} << 20;
/// While more than this was made by reads and is not yet with the threads of its clients, threads
/// of the directory make no more of it. They wait no longer than this, so that a thread that takes
/// nothing does not stop the directory for others.
constexpr std::size_t answer_octets_max = std::size_t{8} << 20;
constexpr std::chrono::seconds answer_wait_max{1};

/// The methods of an endpoint, as Allow lists them.
auto methods_of(scim_endpoint endpoint) -> std::string_view {
  switch (endpoint) {
    case scim_endpoint::search:
    case scim_endpoint::bulk: return "POST";
    case scim_endpoint::type: return "GET, HEAD, POST";
    case scim_endpoint::resource:
    case scim_endpoint::me: return "GET, HEAD, PUT, PATCH, DELETE";
    default: return "GET, HEAD";
  }
}

auto allows(std::string_view methods, std::string_view method) -> bool {
  while (!methods.empty()) {
    if (http::take_element(methods) == method) {
      return true;
    }
  }
  return false;
}

/// Who says nothing means it.
auto is_json(std::string_view content_type) -> bool {
  return http::media_type(content_type).empty() || scim::is_json(content_type);
}

auto is_read(scim_call const& call) -> bool {
  auto const& method = call.request.method;
  return method == "GET" || method == "HEAD" || call.target.endpoint == scim_endpoint::search;
}

/// What is wrong with a request, as far as its content is not needed for that; nothing when it is
/// in order.
auto refusal_of(scim_call const& call) -> std::optional<scim_answer> {
  auto const& request = call.request;
  auto const endpoint = call.target.endpoint;
  if (endpoint == scim_endpoint::nothing) {
    return scim_error_answer(not_found("endpoint"));
  }
  auto const methods = methods_of(endpoint);
  if (endpoint == scim_endpoint::me && request.method == "POST") {
    return scim_error_answer({501, scim_type::none, "Create a user at the endpoint of its type."});
  }
  if (!allows(methods, request.method)) {
    auto answer =
        scim_error_answer({405, scim_type::none, "This endpoint does not support the method."});
    answer.fields.push_back({"Allow", std::string(methods)});
    return answer;
  }
  if (request.read_only && !is_read(call)) {
    return scim_error_answer({403, scim_type::none, "This token is read-only."});
  }
  if (request.content.size() > request.content_octets_max()) {
    return scim_error_answer({413, scim_type::none,
                              "The body is larger than the " +
                                  std::to_string(request.content_octets_max()) +
                                  " bytes that are allowed."});
  }
  bool const has_content =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (has_content && !is_json(request.content_type)) {
    return scim_error_answer({415, scim_type::none, "The content must be application/scim+json."});
  }
  return std::nullopt;
}

auto answer_of(result<scim_answer, error> made) -> scim_answer {
  return made ? *std::move(made) : scim_error_answer(made.error());
}

/// What `make` makes, or that there is no memory for it, which must not end the thread of a
/// directory.
template <class Make>
auto guarded(Make make) -> scim_answer {
  try {
    return make();
  } catch (std::bad_alloc const&) {
  }
  return scim_error_answer({503, scim_type::none, "There is not enough memory for the response."});
}

auto is_discovery(scim_endpoint endpoint) -> bool {
  return endpoint == scim_endpoint::schemas || endpoint == scim_endpoint::resource_types ||
         endpoint == scim_endpoint::service_provider_config;
}

auto plan_read(std::shared_ptr<scim_call const> const& call) -> result<scim_read, error> {
  switch (call->target.endpoint) {
    case scim_endpoint::root:
    case scim_endpoint::search:
    case scim_endpoint::type: return plan_list(call);
    default: return plan_get(call);
  }
}

auto plan_change(std::shared_ptr<scim_call const> const& call) -> result<scim_write, error> {
  return call->target.endpoint == scim_endpoint::bulk ? plan_bulk(call) : plan_write(call);
}

/// A text that grew row by row may have as much room again behind it, which waits with it and which
/// no budget counts.
void drop_spare_room(std::string& text) {
  constexpr std::size_t large = 256 * 1024;
  if (text.size() >= large && text.capacity() > text.size() + text.size() / 8) {
    try {
      text.shrink_to_fit();
    } catch (std::bad_alloc const&) {  // it stays as it is
    }
  }
}

}  // namespace

auto scim_request::content_octets_max() const -> std::uint64_t {
  return static_cast<std::uint64_t>(path == "/Bulk" ? options->bulk_max_payload
                                                    : options->max_body);
}

void scim_service::probe(std::move_only_function<void()> done) {
  if (!health_.is_failing()) {
    directory_->read("",  // of no tenant
                     [this, done = std::move(done)](
                         store::directory_outcome<store::directory_reader*> reader) mutable {
                       auto const found =
                           reader ? (*reader)->find_any("") : failure(reader.error());
                       if (!found) {
                         note(found.error());
                       }
                       done();
                     });
    return;
  }
  directory_->write(
      "",
      [parts = parts_](store::directory_writer& in) {
        auto const& type = parts->model->types().front();
        json::value const nothing = json::object{{"id", "probe"}};
        auto const rid = in.insert(type, "probe", to_string(nothing), index_entries(type, nothing));
        return rid && in.remove(type, *rid);
      },
      [this, done = std::move(done)](store::directory_outcome<void> const& made) mutable {
        made ? health_.note(nullptr) : note(made.error());
        done();
      });
}

void scim_service::note(store::store_error const& error) {
  if (error.fault != store::store_fault::stopped) {
    health_.note(&error);
  }
}

auto cursor_key_of(std::span<std::byte const> secret, std::string_view purpose)
    -> scim::cursor_key {
  hmac_sha256 derive{secret};
  derive.update(purpose);
  return {1, derive.finish()};
}

scim_service::scim_service(std::shared_ptr<scim::model const> model,
                           std::unique_ptr<store::directory> in, std::span<std::byte const> secret,
                           std::function<void(std::string_view)> report)
    : requests_(request_octets_max), answers_(answer_octets_max), directory_(std::move(in)) {
  auto const key = cursor_key_of(secret, "tidegate scim cursor");
  parts_ = std::make_shared<scim_parts const>(
      scim_parts{std::move(model), scim::cursor_sealer({&key, 1}),
                 std::make_shared<scim_ignored>(std::move(report))});
}

scim_service::~scim_service() {
  answers_.close();  // the threads of the directory are waited for next
}

struct scim_service::waiting_call {
  std::shared_ptr<scim_call const> call;
  answer_to to;
  memory_budget::reservation content{};
};

void scim_service::handle(scim_request request, bool has_time, answer_to to) {
  if (!request.accept.empty()) {
    to = [accept = request.accept, to = std::move(to)](scim_answer answer) mutable {
      set_accepted_type(answer, accept);
      to(std::move(answer));
    };
  }
  auto target = find_scim_target(*parts_->model, request.path);
  auto const now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  auto const call = std::make_shared<scim_call const>(
      scim_call{parts_, std::move(request), std::move(target), now});
  if (auto refused = refusal_of(*call)) {
    to(*std::move(refused));
    return;
  }
  waiting_call waiting{call, std::move(to)};
  if (!call->request.content.empty()) {
    auto reserved = requests_.try_reserve(call->request.content.size());
    if (!reserved) {
      auto refused =
          scim_error_answer({503, scim_type::none, "Too many requests wait for the directory."});
      refused.was_not_run = true;
      waiting.to(std::move(refused));
      return;
    }
    waiting.content = *std::move(reserved);
  }
  if (is_discovery(call->target.endpoint)) {
    waiting.to(answer_discovery(*call));
  } else if (is_read(*call)) {
    read(std::move(waiting), has_time);
  } else {
    write(std::move(waiting));
  }
}

void scim_service::read(waiting_call waiting, bool has_time) {
  auto plan = plan_read(waiting.call);
  if (!plan) {
    waiting.to(scim_error_answer(plan.error()));
    return;
  }
  auto const& tenant = waiting.call->request.tenant;
  if (has_time && plan->looks_quick) {
    std::optional<result<scim_answer, error>> made;
    bool const was_called = directory_->read_here(tenant, [&](store::directory_reader& from) {
      made = plan->answer(from, read_effort::quick);
    });
    if (was_called && made) {
      waiting.to(answer_of(*std::move(made)));
      return;
    }
  }
  directory_->read(tenant, [this, answer = std::move(plan->answer), to = std::move(waiting.to),
                            content = std::move(waiting.content)](
                               store::directory_outcome<store::directory_reader*> from) mutable {
    if (!from) {
      to(scim_error_answer(unavailable(from.error())));
      return;
    }
    answers_.wait(answer_wait_max);
    auto made = guarded([&] { return answer_of(*answer(**from, read_effort::any)); });
    content.release();
    drop_spare_room(made.content);
    made.counted = answers_.reserve(made.content.size());
    to(std::move(made));
  });
}

void scim_service::write(waiting_call waiting) {
  auto plan = plan_change(waiting.call);
  if (!plan) {
    waiting.to(scim_error_answer(plan.error()));
    return;
  }
  auto const made = std::make_shared<scim_answer>();
  directory_->write(
      waiting.call->request.tenant,
      [plan = *std::move(plan), made](store::directory_writer& in) {
        bool keep = false;
        *made = guarded([&] {
          auto answer = plan(in);
          keep = answer.has_value();
          return answer_of(std::move(answer));
        });
        return keep;
      },
      [this, made, to = std::move(waiting.to),
       content = std::move(waiting.content)](store::directory_outcome<void> const& done) mutable {
        content.release();
        done ? health_.note(nullptr) : note(done.error());
        if (!done) {
          *made = scim_error_answer(unavailable(done.error()));
          made->was_not_run = done.error().fault != store::store_fault::in_doubt;
        }
        to(std::move(*made));
      });
}

}  // namespace tidegate::gateway
