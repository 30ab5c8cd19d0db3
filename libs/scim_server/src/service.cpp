// SPDX-License-Identifier: Apache-2.0
//
// From a request to the part of the service that answers it, and from there to the directory.
#include <tidegate/scim_server/service.hpp>

#include <tidegate/base/sha256.hpp>
#include <tidegate/http/accept.hpp>
#include <tidegate/http/field_name.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim_server/job.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

/// More content of requests than this does not wait for the directory: the next one gets 503.
constexpr std::size_t request_octets_max = std::size_t{64} << 20;
/// While more than this was made by reads and is not yet with the threads of its clients, threads of
/// the directory make no more of it. They wait no longer than this, so that a thread that takes
/// nothing does not stop the directory for others.
constexpr std::size_t answer_octets_max = std::size_t{8} << 20;
constexpr std::chrono::seconds answer_wait_max{1};

/// A segment of a path in which escapes are decoded.
auto decoded(std::string_view segment) -> std::string {
  std::string out;
  if (segment.contains('%')) {
    http::append_query_decoded(out, segment);
  } else {
    out.assign(segment);
  }
  return out;
}

/// What follows `prefix` in `path`: nothing where it is not its beginning, or ends inside of a segment.
auto behind(std::string_view path, std::string_view prefix) -> std::optional<std::string_view> {
  if (!path.starts_with(prefix)) {
    return std::nullopt;
  }
  path.remove_prefix(prefix.size());
  if (!path.empty() && path.front() != '/') {
    return std::nullopt;
  }
  path.remove_prefix(std::min<std::size_t>(path.size(), 1));
  return path;
}

/// The methods of a place, as Allow lists them.
auto methods_of(scim_place place) -> std::string_view {
  switch (place) {
    case scim_place::search:
    case scim_place::bulk: return "POST";
    case scim_place::type: return "GET, HEAD, POST";
    case scim_place::resource:
    case scim_place::me: return "GET, HEAD, PUT, PATCH, DELETE";
    default: return "GET, HEAD";
  }
}

auto allows(std::string_view methods, std::string_view method) -> bool {
  while (!methods.empty()) {
    auto const end = std::min(methods.find(", "), methods.size());
    if (methods.substr(0, end) == method) {
      return true;
    }
    methods.remove_prefix(std::min(end + 2, methods.size()));
  }
  return false;
}

/// `application/scim+json` or `application/json`, with whatever parameters. Who says nothing means it.
auto is_json(std::string_view content_type) -> bool {
  auto type = content_type.substr(0, content_type.find(';'));
  type = type.substr(0, type.find_last_not_of(" \t") + 1);
  return type.empty() || http::equal_names(type, scim::scim_json) ||
         http::equal_names(type, "application/json");
}

/// What can be said of a request before anybody looks at what it is about; nothing when it is in order.
auto refusal_of(scim_job const& job) -> std::optional<scim_answer> {
  auto const& request = job.request;
  auto const place = job.target.place;
  if (place == scim_place::nothing) {
    return scim_error_answer(not_found("endpoint"));
  }
  auto const methods = methods_of(place);
  if (place == scim_place::me && request.method == "POST") {
    return scim_error_answer({501, scim_type::none, "A user is made at its own endpoint."});
  }
  if (!allows(methods, request.method)) {
    auto answer =
        scim_error_answer({405, scim_type::none, "The method is not one of this endpoint."});
    answer.fields.push_back({"Allow", std::string(methods)});
    return answer;
  }
  bool const reads =
      request.method == "GET" || request.method == "HEAD" || place == scim_place::search;
  if (request.read_only && !reads) {
    return scim_error_answer({403, scim_type::none, "This token is only for reading."});
  }
  if (request.content.size() > request.content_octets_max()) {
    return scim_error_answer({413, scim_type::none,
                              "The content is longer than the " +
                                  std::to_string(request.content_octets_max()) +
                                  " octets that are allowed."});
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

/// What `make` makes, or that there is no memory for it: that is no reason to end the thread of a directory.
template <class Make>
auto guarded(Make make) -> scim_answer {
  try {
    return make();
  } catch (std::bad_alloc const&) {
  }
  return scim_error_answer({503, scim_type::none, "There is no memory for the answer."});
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
  return static_cast<std::uint64_t>(path == "/Bulk" ? how->bulk_max_payload : how->max_body);
}

auto find_scim_target(scim::model const& model, std::string_view path) -> scim_target {
  if (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  if (path.empty()) {
    return {scim_place::root};
  }
  struct fixed_place {
    std::string_view path;
    scim_place place;
    bool has_name;
  };
  static constexpr fixed_place places[] = {
      // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
      {"/.search", scim_place::search, false},
      {"/Bulk", scim_place::bulk, false},
      {"/Me", scim_place::me, false},
      {"/Schemas", scim_place::schemas, true},
      {"/ResourceTypes", scim_place::resource_types, true},
      {"/ServiceProviderConfig", scim_place::service_provider_config, false},
  };
  for (auto const& each : places) {
    if (auto const rest = behind(path, each.path)) {
      bool const fits = rest->empty() || (each.has_name && !rest->contains('/'));
      return fits ? scim_target{each.place, nullptr, decoded(*rest)} : scim_target{};
    }
  }
  for (auto const& type : model.types()) {
    auto const rest = behind(path, type.definition.type().endpoint);
    if (!rest) {
      continue;
    }
    if (rest->empty()) {
      return {scim_place::type, &type};
    }
    if (*rest == ".search") {
      return {scim_place::search, &type};
    }
    return rest->contains('/') ? scim_target{}
                               : scim_target{scim_place::resource, &type, decoded(*rest)};
  }
  return {};
}

auto scim_error_answer(error const& error) -> scim_answer {
  std::string content;
  scim::append_error(content, error);
  auto answer = json_answer(error.status, std::move(content));
  if (error.status == 503) {
    answer.fields.push_back({"Retry-After", "1"});
  }
  return answer;
}

void set_accepted_type(scim_answer& answer, std::string_view accept) {
  if (accept.empty() || accept == "*/*" || accept == scim::scim_json) {
    return;  // as most clients say
  }
  constexpr std::string_view plain = "application/json";
  auto const preference = http::preference_for(plain, accept);
  if (preference.weight == 0 || preference <= http::preference_for(scim::scim_json, accept)) {
    return;
  }
  for (auto& field : answer.fields) {
    if (field.name == "Content-Type" && field.value == scim::scim_json) {
      field.value = plain;
    }
  }
}

auto json_answer(int status, std::string content) -> scim_answer {
  scim_answer answer{status, {}, std::move(content)};
  answer.fields.reserve(4);  // as many as one with a resource has
  answer.fields.push_back({"Content-Type", std::string(scim::scim_json)});
  return answer;
}

auto bad_request(scim_type type, std::string detail) -> error {
  return {400, type, std::move(detail)};
}

auto not_found(std::string_view what) -> error {
  return {404, scim_type::none, "There is no such " + std::string(what) + "."};
}

auto unavailable(store::store_error const& error) -> scim::error {
  if (error.fault == store::store_fault::in_doubt) {
    return {503, scim_type::none,
            "The directory does not say whether the change was made: look before you try again."};
  }
  return {503, scim_type::none, "The directory cannot be used at the moment."};
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

void scim_service::handle(scim_request request, bool has_time, answer_to to) {
  if (!request.accept.empty()) {
    to = [accept = request.accept, to = std::move(to)](scim_answer answer) mutable {
      set_accepted_type(answer, accept);
      to(std::move(answer));
    };
  }
  auto target = find_scim_target(*parts_->model, request.path);
  auto const now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  auto const job = std::make_shared<scim_job const>(
      scim_job{parts_, std::move(request), std::move(target), now});
  if (auto refused = refusal_of(*job)) {
    to(*std::move(refused));
    return;
  }
  memory_budget::reservation content;
  if (!job->request.content.empty()) {
    auto reserved = requests_.try_reserve(job->request.content.size());
    if (!reserved) {
      auto refused =
          scim_error_answer({503, scim_type::none, "Too many requests wait for the directory."});
      refused.was_not_run = true;
      to(std::move(refused));
      return;
    }
    content = *std::move(reserved);
  }
  auto const read = [&](result<scim_read, error> plan) {
    if (!plan) {
      to(scim_error_answer(plan.error()));
      return;
    }
    if (has_time && plan->looks_quick) {
      std::optional<result<scim_answer, error>> made;
      bool const was_called = directory_->read_here(
          job->request.tenant,
          [&](store::directory_reader& from) { made = plan->answer(from, read_effort::quick); });
      if (was_called && made) {
        to(answer_of(*std::move(made)));
        return;
      }
    }
    directory_->read(
        job->request.tenant,
        [this, answer = std::move(plan->answer), to = std::move(to), content = std::move(content)](
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
  };
  auto const write = [&](result<scim_write, error> plan) {
    if (!plan) {
      to(scim_error_answer(plan.error()));
      return;
    }
    auto const made = std::make_shared<scim_answer>();
    directory_->write(
        job->request.tenant,
        [plan = *std::move(plan), made](store::directory_writer& in) {
          bool keep = false;
          *made = guarded([&] {
            auto answer = plan(in);
            keep = answer.has_value();
            return answer_of(std::move(answer));
          });
          return keep;
        },
        [this, made, to = std::move(to),
         content = std::move(content)](store::directory_outcome<void> const& done) mutable {
          content.release();
          done ? health_.note(nullptr) : note(done.error());
          if (!done) {
            *made = scim_error_answer(unavailable(done.error()));
            made->was_not_run = done.error().fault != store::store_fault::in_doubt;
          }
          to(std::move(*made));
        });
  };
  bool const gets = job->request.method == "GET" || job->request.method == "HEAD";
  switch (job->target.place) {
    case scim_place::schemas:
    case scim_place::resource_types:
    case scim_place::service_provider_config: to(answer_discovery(*job)); break;
    case scim_place::root:
    case scim_place::search: read(plan_list(job)); break;
    case scim_place::type: gets ? read(plan_list(job)) : write(plan_write(job)); break;
    case scim_place::bulk: write(plan_bulk(job)); break;
    default: gets ? read(plan_get(job)) : write(plan_write(job)); break;
  }
}

// ---- the model ----

namespace {

/// One schema or resource type, or several in an array or a ListResponse.
auto read_definitions(std::string const& file, std::vector<scim::schema>& schemas,
                      std::vector<scim::resource_type>& types) -> result<void, std::string> {
  constexpr std::size_t octets_max = std::size_t{8} << 20;
  std::ifstream from(file, std::ios::binary);
  std::string const text((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  if (!from) {
    return failure("cannot read " + file);
  }
  auto const read = json::parse(text, {.octets_max = octets_max});
  if (!read) {
    return failure(file + ": " + to_string(read.error()));
  }
  auto const* const listed = read->find("Resources");
  auto const& all = listed != nullptr ? *listed : *read;
  json::array const one{all};
  for (auto const& each : all.if_array() != nullptr ? *all.if_array() : one) {
    // A resource type has an endpoint, and a schema has none.
    if (each.find("endpoint") != nullptr) {
      auto type = scim::read_resource_type(each);
      if (!type) {
        return failure(file + ": " + to_string(type.error()));
      }
      types.push_back(*std::move(type));
    } else {
      auto schema = scim::read_schema(each);
      if (!schema) {
        return failure(file + ": " + to_string(schema.error()));
      }
      schemas.push_back(*std::move(schema));
    }
  }
  return {};
}

}  // namespace

auto make_scim_model(scim_config const& settings)
    -> result<std::shared_ptr<scim::model const>, std::string> {
  std::vector<scim::schema> schemas;
  std::vector<scim::resource_type> types;
  for (auto const& file : settings.schemas) {
    TIDEGATE_TRY_VOID(read_definitions(file, schemas, types));
  }
  auto made = scim::model::make(schemas, types, settings.indexes);
  if (!made) {
    return failure("scim: " + made.error().subject + ": " + made.error().text);
  }
  return std::make_shared<scim::model const>(*std::move(made));
}

}  // namespace tidegate::gateway
