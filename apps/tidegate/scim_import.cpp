// SPDX-License-Identifier: Apache-2.0
#include "scim_import.hpp"

#include "durable_file.hpp"
#include "exit_status.hpp"
#include "outcomes.hpp"
#include "progress.hpp"
#include "scim_records.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace tidegate::app {

namespace {

using client::response;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using trouble = std::string;  // what to say to people

constexpr auto between_syncs = 1s;
/// So long after Ctrl-C answers to what is under way are waited for.
constexpr auto last_wait = 5s;
/// Of bulk requests; what is around their operations; and of the answers to them.
constexpr std::size_t bulk_octets_max = std::size_t{1} << 20;
constexpr std::size_t bulk_frame_octets = 128;
constexpr std::size_t answer_octets_max = std::size_t{16} << 20;

/// What becomes of a line, as the journal has it.
enum class settled : char {
  created = 'c',
  replaced = 'u',
  skipped = 's',
  conflict = 'x',
  rejected = 'r',
};

struct counts {
  std::map<settled, std::uint64_t> of;
  std::uint64_t all = 0;
  void add(settled what) {
    ++of[what];
    ++all;
  }
};

/// A line of the file on its way.
struct job {
  std::uint64_t line = 0;
  std::string text;
  json::value resource{};
  bool was_settled = false;  ///< before this run; it is there only to make the same request again
  enum class stage : std::uint8_t { create, find, replace } at = stage::create;
};

/// Lines of the file that go in one request.
struct batch {
  std::vector<job> jobs;
  std::string operations;  ///< as JSON, with commas between
};

/// What the server takes in one request; 0: it does not.
struct bulk_limits {
  std::size_t operations = 0;
  std::size_t octets = 0;
};

[[nodiscard]] auto to_hex(std::span<std::byte const> octets) -> std::string {
  std::string out;
  for (auto const each : octets) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[std::to_integer<unsigned>(each) >> 4];
    out += digits[std::to_integer<unsigned>(each) & 15];
  }
  return out;
}

/// The schema of what an endpoint that everybody has takes.
[[nodiscard]] auto schema_of(std::string_view url) -> std::string {
  url = url.substr(0, url.find_first_of("?#"));
  if (url.ends_with("/Users")) {
    return "urn:ietf:params:scim:schemas:core:2.0:User";
  }
  return url.ends_with("/Groups") ? "urn:ietf:params:scim:schemas:core:2.0:Group" : "";
}

[[nodiscard]] auto name_of(scim_format format) -> std::string {
  return format == scim_format::csv ? "csv" : "jsonl";
}

/// Whether two names are of one file, which need not be there.
[[nodiscard]] auto is_same_file(std::string const& a, std::string const& b) -> bool {
  std::error_code fault;
  if (std::filesystem::equivalent(a, b, fault)) {
    return true;
  }
  auto const whole = [&](std::string const& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name), fault);
  };
  fault.clear();
  return whole(a) == whole(b) && !fault;
}

/// Whether an answer of 409 to a first request leaves open what became of it: its key is in use, or
/// nobody knows how its use ended. Other conflicts are about the resource.
[[nodiscard]] auto is_of_key(response const& answer) -> bool {
  constexpr std::string_view problem = "application/problem+json";
  auto const type = answer.fields.find("content-type").value_or("");
  return answer.attempts > 1 || scim::equal_names(type.substr(0, problem.size()), problem);
}

/// Whether a request that was refused may have been carried out all the same.
[[nodiscard]] auto may_have_run(response const& answer) -> bool {
  constexpr std::array harmless = {401, 404, 405};
  return answer.attempts > 1 || std::ranges::find(harmless, answer.status) == harmless.end();
}

/// One import, from the command line to its exit status.
class importer {
 public:
  explicit importer(import_settings const& settings)
      : settings_(settings),
        fields_(scim_fields_of(settings)),
        schema_(schema_of(settings.url)),
        began_(clock::now()) {
    fields_.push_back({"Accept", std::string(scim::scim_json)});
  }
  importer(importer const&) = delete;
  auto operator=(importer const&) -> importer& = delete;
  ~importer() {
    if (has_file() && file_ >= 0) {
      ::close(file_);
    }
  }

  [[nodiscard]] auto run() -> int {
    auto opened = outcomes::open(session_options_of(settings_, settings_.parallel));
    if (!opened) {
      std::cerr << "error: " << opened.error() << '\n';
      return exit_failure;
    }
    outcomes_ = *std::move(opened);
    if (auto const ready = prepare(); !ready) {
      std::cerr << "error: " << ready.error() << '\n';
      return outcomes_->is_interrupted() ? exit_interrupted : exit_usage;
    }
    auto done = work();
    if (journal_) {
      if (auto const kept = sync(); !kept && done) {
        done = failure(kept.error());
      }
    }
    progress_.clear();
    return summarize(done);
  }

 private:
  [[nodiscard]] auto has_file() const -> bool { return settings_.file != "-"; }
  [[nodiscard]] auto journal_name() const -> std::string { return settings_.file + ".import"; }
  [[nodiscard]] auto rejects_name() const -> std::string {
    return !settings_.rejects.empty() ? settings_.rejects
           : has_file()               ? settings_.file + ".rejects"
                                      : "";
  }

  /// Opens all files; the journal says what was settled before. Errors are of the command line.
  [[nodiscard]] auto prepare() -> result<void, trouble> {
    std::array<std::byte, 16> fresh{};
    if (::getrandom(fresh.data(), fresh.size(), 0) != static_cast<ssize_t>(fresh.size())) {
      return failure(trouble("the system gives no random numbers"));
    }
    seed_ = to_hex(fresh);
    made_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    if (has_file()) {
      file_ = ::open(settings_.file.c_str(), O_RDONLY | O_CLOEXEC);
      if (file_ < 0) {
        return failure("cannot read " + settings_.file + ": " + std::strerror(errno));
      }
      TIDEGATE_TRY_VOID(look_through());
    } else {
      file_ = STDIN_FILENO;
    }
    TIDEGATE_TRY_VOID(look_at_rejects());
    if (has_file()) {
      if (settings_.bulk > 0 && !settings_.resume && !std::filesystem::exists(journal_name())) {
        TIDEGATE_TRY_VOID(ask_for_bulk());
      }
      TIDEGATE_TRY_VOID(open_journal());
    } else if (settings_.resume) {
      return failure(trouble("--resume needs a file"));
    }
    if (auto const name = rejects_name(); !name.empty()) {
      TIDEGATE_TRY(rejects_, durable_file::open(name));
      TIDEGATE_TRY_VOID(rejects_->cut(rejects_octets_));
    }
    return {};
  }

  /// Which file it is, and about how many lines it has.
  [[nodiscard]] auto look_through() -> result<void, trouble> {
    sha256 hash;
    std::string piece(std::size_t{1} << 18, '\0');
    for (;;) {
      auto const got = ::read(file_, piece.data(), piece.size());
      if (got < 0) {
        return failure("cannot read " + settings_.file + ": " + std::strerror(errno));
      }
      if (got == 0) {
        break;
      }
      if (outcomes_->is_interrupted_now()) {
        return failure(trouble("interrupted"));
      }
      auto const octets = std::string_view(piece).substr(0, static_cast<std::size_t>(got));
      hash.update(octets);
      total_ += static_cast<std::uint64_t>(std::ranges::count(octets, '\n'));
    }
    digest_ = to_hex(hash.finish());
    return ::lseek(file_, 0, SEEK_SET) == 0
               ? result<void, trouble>()
               : failure("cannot read " + settings_.file + " twice: " + std::strerror(errno));
  }

  /// The file of rejects must not be one that somebody still needs. Looks before anything is
  /// written.
  [[nodiscard]] auto look_at_rejects() const -> result<void, trouble> {
    auto const name = rejects_name();
    if (name.empty()) {
      return {};
    }
    if (has_file() && (is_same_file(name, settings_.file) || is_same_file(name, journal_name()))) {
      return failure("what is not taken cannot be written to " + name + ": the import reads it");
    }
    std::error_code none;
    if (auto const size = std::filesystem::file_size(name, none);
        !none && size > 0 && !settings_.resume) {
      return failure(name + " is there and would be lost: remove it, or name another by --rejects");
    }
    return {};
  }

  [[nodiscard]] auto open_journal() -> result<void, trouble> {
    bool const is_there = std::filesystem::exists(journal_name());
    if (is_there && !settings_.resume) {
      return failure(journal_name() +
                     " is there, of an import that did not end: --resume goes on with it; remove "
                     "it to begin anew");
    }
    if (!is_there && settings_.resume) {
      return failure("there is nothing to resume: no " + journal_name());
    }
    TIDEGATE_TRY(journal_, durable_file::open(journal_name()));
    TIDEGATE_TRY(auto const size, journal_->size());
    line_reader lines(*journal_, size);
    TIDEGATE_TRY(auto const first, lines.next());
    if (!first) {  // a new one, or one that ended before it began
      TIDEGATE_TRY_VOID(journal_->cut(0));
      TIDEGATE_TRY_VOID(journal_->write(heading()));
      return journal_->sync();
    }
    TIDEGATE_TRY_VOID(take_heading(*first));
    auto octets = first->size() + 1;
    for (;;) {
      TIDEGATE_TRY(auto const line, lines.next());
      if (!line) {
        return journal_->cut(octets);
      }
      octets += line->size() + 1;
      if (!take_entry(*line)) {
        return failure(journal_name() + " is no journal of an import");
      }
    }
  }

  /// Whether the server has /Bulk, and for how much. One that does not say has not.
  [[nodiscard]] auto ask_for_bulk() -> result<void, trouble> {
    client::request wanted{.url = base() + "/ServiceProviderConfig", .fields = fields_};
    wanted.time_max = longest;
    if (auto const sent = outcomes_->send(std::move(wanted), 0); !sent) {
      return {};  // the first line meets the same
    }
    std::optional<outcomes::outcome> came;
    while (!came) {
      came = outcomes_->wait(progress::tick);
      if (outcomes_->is_interrupted()) {
        return failure(trouble("interrupted"));
      }
    }
    bool const is_answered = came->what && came->what->status == 200;
    auto const read = json::parse(is_answered ? came->what->body : "null");
    auto const* const bulk = read ? read->find("bulk") : nullptr;
    auto const* const is_there = bulk != nullptr ? bulk->find("supported") : nullptr;
    if (is_there == nullptr || *is_there != json::value(true)) {
      return {};
    }
    auto const limit = [&](std::string_view name, std::size_t most) {
      auto const* const value = bulk->find(name);
      auto const* const number = value != nullptr ? value->if_integer() : nullptr;
      return number == nullptr || *number < 0 ? std::size_t{0}
                                              : std::min(most, static_cast<std::size_t>(*number));
    };
    bulk_ = {limit("maxOperations", settings_.bulk), limit("maxPayloadSize", bulk_octets_max)};
    if (bulk_.operations < 2 || bulk_.octets <= bulk_frame_octets) {
      bulk_ = {};
    }
    return {};
  }

  [[nodiscard]] auto heading() const -> std::string {
    json::object out;
    out.append("url", settings_.url);
    out.append("format", name_of(settings_.format));
    out.append("digest", digest_);
    out.append("seed", seed_);
    out.append("began", static_cast<std::int64_t>(made_.time_since_epoch().count()));
    if (bulk_.operations > 0) {
      out.append("bulkOperations", static_cast<std::int64_t>(bulk_.operations));
      out.append("bulkOctets", static_cast<std::int64_t>(bulk_.octets));
    }
    return to_string(json::value(std::move(out))) + "\n";
  }

  [[nodiscard]] auto take_heading(std::string_view line) -> result<void, trouble> {
    auto const read = json::parse(line);
    auto const text = [&](std::string_view name) {
      auto const* const value = read ? read->find(name) : nullptr;
      auto const* const found = value == nullptr ? nullptr : value->if_string();
      return found == nullptr ? std::string() : *found;
    };
    auto const* const began = read ? read->find("began") : nullptr;
    if (began == nullptr || began->if_integer() == nullptr || text("seed").empty()) {
      return failure(journal_name() + " is no journal of an import");
    }
    if (text("url") != settings_.url) {
      return failure(journal_name() + " is of an import to " + text("url"));
    }
    if (auto const format = text("format");
        !format.empty() && format != name_of(settings_.format)) {
      return failure(journal_name() + " is of an import with --format " + format);
    }
    if (text("digest") != digest_) {
      return failure(settings_.file + " has changed since its import began");
    }
    auto const number = [&](std::string_view name) -> std::size_t {
      auto const* const value = read->find(name);
      auto const* const found = value == nullptr ? nullptr : value->if_integer();
      return found == nullptr || *found < 0 ? 0 : static_cast<std::size_t>(*found);
    };
    bulk_ = {number("bulkOperations"), number("bulkOctets")};
    seed_ = text("seed");
    made_ = idempotency::wall_time(std::chrono::milliseconds(*began->if_integer()));
    return {};
  }

  /// `LINE OUTCOME OCTETS`, the last one of the file of rejects.
  [[nodiscard]] auto take_entry(std::string_view text) -> bool {
    std::uint64_t line = 0;
    auto const* const end = text.data() + text.size();
    auto const number = std::from_chars(text.data(), end, line);
    if (number.ec != std::errc{} || end - number.ptr < 4 || number.ptr[0] != ' ' ||
        !std::string_view("cusxr").contains(number.ptr[1]) || number.ptr[2] != ' ') {
      return false;
    }
    std::uint64_t octets = 0;
    if (auto const size = std::from_chars(number.ptr + 3, end, octets);
        size.ec != std::errc{} || size.ptr != end) {
      return false;
    }
    rejects_octets_ = octets;
    settled_.insert(line);
    counts_.add(static_cast<settled>(number.ptr[1]));
    return true;
  }

  /// Until all is settled, something makes it senseless to go on, or somebody interrupts.
  [[nodiscard]] auto work() -> result<void, trouble> {
    result<void, trouble> waited;
    scim_record_reader reader(file_, settings_.format, [&] {
      waited = wait_for_input();
      return waited && !is_ending();
    });
    std::optional<clock::time_point> ends;
    bool is_read = false;
    for (;;) {
      while (!is_read && !is_ending() && under_way() < settings_.parallel) {
        auto record = reader.next();
        TIDEGATE_TRY_VOID(waited);
        if (!record) {
          stopped_ = record.error();
        } else if (!*record) {
          is_read = !is_ending();
          if (is_read) {
            TIDEGATE_TRY_VOID(post_batch());
          }
        } else if (bulk_.operations > 0 || !settled_.contains((*record)->line)) {
          TIDEGATE_TRY_VOID(begin(**std::move(record)));
        }
      }
      if (under_way() == 0) {
        break;
      }
      TIDEGATE_TRY_VOID(pass());
      auto const now = clock::now();
      if (outcomes_->is_interrupted() && !ends) {
        ends = now + last_wait;
      }
      if (ends && now > *ends) {
        break;
      }
    }
    is_complete_ = is_read && stopped_.empty() && under_way() == 0;
    return stopped_.empty() ? result<void, trouble>() : failure(stopped_);
  }

  /// How many requests.
  [[nodiscard]] auto under_way() const -> std::size_t { return jobs_.size() + batches_.size(); }

  /// Whether no more lines are to be begun.
  [[nodiscard]] auto is_ending() const -> bool {
    return !stopped_.empty() || outcomes_->is_interrupted();
  }

  /// Until there is something to read, or no use in it; answers are taken meanwhile.
  [[nodiscard]] auto wait_for_input() -> result<void, trouble> {
    do {
      TIDEGATE_TRY_VOID(pass(file_));
    } while (!outcomes_->has_input() && !is_ending());
    return {};
  }

  /// Waits until something happens, for a moment at most, and does what follows from it.
  [[nodiscard]] auto pass(int input = -1) -> result<void, trouble> {
    if (auto came = outcomes_->wait(progress::tick, input)) {
      TIDEGATE_TRY_VOID(take(came->tag, std::move(came->what)));
    }
    auto const now = clock::now();
    if (now - synced_ > between_syncs) {
      TIDEGATE_TRY_VOID(sync());
    }
    auto const activity = outcomes_->activity();
    progress_.show({.done = counts_.all,
                    .total = total_,
                    .under_way = activity.under_way,
                    .retries = activity.retries,
                    .next_in = activity.under_way == 0 ? activity.next_in : std::nullopt},
                   now);
    return {};
  }

  [[nodiscard]] auto begin(scim_record record) -> result<void, trouble> {
    job made{.line = record.line, .text = std::move(record.text)};
    made.was_settled = settled_.contains(made.line);
    if (!record.resource) {
      return made.was_settled
                 ? result<void, trouble>()
                 : reject(made, settled::rejected, {.detail = record.resource.error()});
    }
    made.resource = *std::move(record.resource);
    return bulk_.operations > 0 ? add_to_batch(std::move(made)) : post(std::move(made));
  }

  /// Which lines go together depends on the file alone: what was under way when the program ended
  /// is sent again as the same request.
  [[nodiscard]] auto add_to_batch(job made) -> result<void, trouble> {
    std::string operation = R"({"method":"POST","path":")" + endpoint() + R"(","bulkId":")" +
                            std::to_string(made.line) + R"(","data":)" + body_of(made.resource) +
                            "}";
    auto const room = bulk_.octets - bulk_frame_octets;
    if (next_.operations.size() + 1 + operation.size() > room) {
      TIDEGATE_TRY_VOID(post_batch());
    }
    if (operation.size() > room) {  // the server may still take it by itself
      return made.was_settled ? result<void, trouble>() : post(std::move(made));
    }
    next_.operations.append(next_.operations.empty() ? "" : ",").append(operation);
    next_.jobs.push_back(std::move(made));
    return next_.jobs.size() == bulk_.operations ? post_batch() : result<void, trouble>();
  }

  [[nodiscard]] auto post_batch() -> result<void, trouble> {
    auto made = std::exchange(next_, {});
    if (std::ranges::all_of(made.jobs, &job::was_settled)) {
      return {};
    }
    auto const line = made.jobs.front().line;
    client::request wanted{
        .method = "POST",
        .url = base() + "/Bulk",
        .body =
            R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"Operations":[)" +
            std::exchange(made.operations, {}) + "]}",
        .idempotent = true};
    wanted.key = key_of("bulk\n" + std::to_string(line), wanted.body);
    if (auto const tag = send(std::move(wanted))) {
      batches_.emplace(*tag, std::move(made));
    }
    return {};
  }

  [[nodiscard]] auto key_of(std::string const& name, std::string_view content) const
      -> std::string {
    auto const digest = sha256::of(seed_ + "\n" + name + "\n" + std::string(content));
    std::array<std::uint8_t, 10> randomness{};
    std::ranges::transform(std::span(digest).first<10>(), randomness.begin(),
                           [](std::byte each) { return std::to_integer<std::uint8_t>(each); });
    return idempotency::make_key(made_, randomness);
  }

  [[nodiscard]] auto post(job made) -> result<void, trouble> {
    client::request wanted{.method = "POST",
                           .url = settings_.url,
                           .body = body_of(made.resource),
                           .idempotent = true,
                           .key = key_of(std::to_string(made.line), made.text)};
    return send(std::move(wanted), std::move(made));
  }

  /// The server gives `id` and `meta` (RFC 7643, section 3.1), and wants `schemas`.
  [[nodiscard]] auto body_of(json::value resource) const -> std::string {
    auto& members = *resource.if_object();
    members.erase("id");
    members.erase("meta");
    if (members.find("schemas") == nullptr && !schema_.empty()) {
      members.append("schemas", json::array{json::value(schema_)});
    }
    return to_string(resource);
  }

  [[nodiscard]] auto send(client::request wanted, job made) -> result<void, trouble> {
    if (auto const tag = send(std::move(wanted))) {
      jobs_.emplace(*tag, std::move(made));
    }
    return {};
  }

  /// Its tag. Nothing when it could not be sent, which ends the import.
  [[nodiscard]] auto send(client::request wanted) -> std::optional<std::uint64_t> {
    wanted.fields = fields_;
    if (!wanted.body.empty()) {
      wanted.fields.push_back({"Content-Type", std::string(scim::scim_json)});
    }
    wanted.time_max = longest;
    auto const tag = ++last_tag_;
    if (auto const sent = outcomes_->send(std::move(wanted), tag); !sent) {
      stopped_ = to_string(sent.error());
      return std::nullopt;
    }
    return tag;
  }

  [[nodiscard]] auto take(std::uint64_t tag, result<response, client::client_error> what)
      -> result<void, trouble> {
    if (auto found = batches_.extract(tag)) {
      return take_batch(std::move(found.mapped()), std::move(what));
    }
    auto made = std::move(jobs_.extract(tag).mapped());
    if (!what) {
      // It is not settled: resumed, it is sent again with the same key.
      may_have_run_ = may_have_run_ || what.error().may_have_run;
      if (what.error().fault != client::client_fault::cancelled) {
        stop(made, to_string(what.error()));
      }
      return {};
    }
    auto const status = what->status;
    auto const refusal = client::refusal_of(status, what->body);
    if (made.at == job::stage::create && (status == 201 || status == 200)) {
      replayed_ += what->fields.find("idempotent-replayed") == "true" ? 1U : 0U;
      return settle(made.line, settled::created);
    }
    if (made.at == job::stage::replace && (status == 200 || status == 204)) {
      return settle(made.line, settled::replaced);
    }
    if (made.at == job::stage::find && status == 200) {
      return replace(std::move(made), what->body);
    }
    if (made.at == job::stage::create && status == 409 && scim::parse_error(what->body)) {
      return take_conflict(std::move(made), refusal);
    }
    // What is not about this line would be said of all others as well; and a line of which nobody
    // knows whether it was carried out is not settled.
    constexpr std::array senseless = {401, 404, 405, 408, 425, 429, 501, 502, 503, 504};
    bool const is_gone = made.at == job::stage::replace && status == 404;
    bool const is_open = made.at == job::stage::create && status == 409 && is_of_key(*what);
    if (status < 400 || is_open ||
        (std::ranges::find(senseless, status) != senseless.end() && !is_gone)) {
      may_have_run_ = may_have_run_ || may_have_run(*what);
      stop(made, to_string(refusal));
      return {};
    }
    return reject(made, settled::rejected, refusal);
  }

  [[nodiscard]] auto take_batch(batch made, result<response, client::client_error> what)
      -> result<void, trouble> {
    auto const& first = made.jobs.front();
    if (!what) {
      may_have_run_ = may_have_run_ || what.error().may_have_run;
      if (what.error().fault != client::client_fault::cancelled) {
        stop(first, to_string(what.error()));
      }
      return {};
    }
    auto const answer = json::parse(what->body, {.octets_max = answer_octets_max});
    auto const* const operations = answer ? answer->find("Operations") : nullptr;
    auto const* const results = operations != nullptr ? operations->if_array() : nullptr;
    if (what->status != 200 || results == nullptr) {
      may_have_run_ = may_have_run_ || may_have_run(*what);
      stop(first, what->status == 200 ? std::string("the answer to /Bulk is no BulkResponse")
                                      : to_string(client::refusal_of(what->status, what->body)));
      return {};
    }
    bool const is_replayed = what->fields.find("idempotent-replayed") == "true";
    std::map<std::string, json::value const*, std::less<>> by_id;
    for (auto const& each : *results) {
      auto const* const id = each.find("bulkId");
      if (id != nullptr && id->if_string() != nullptr) {
        by_id.emplace(*id->if_string(), &each);
      }
    }
    for (auto& each : made.jobs) {
      auto const found = by_id.find(std::to_string(each.line));
      if (!each.was_settled) {
        TIDEGATE_TRY_VOID(
            take_result(std::move(each), found == by_id.end() ? nullptr : found->second));
        replayed_ += is_replayed ? 1U : 0U;
      }
    }
    return {};
  }

  /// What a bulk request says of a line.
  [[nodiscard]] auto take_result(job made, json::value const* result_of) -> result<void, trouble> {
    int status = 0;
    if (auto const* const value = result_of != nullptr ? result_of->find("status") : nullptr) {
      // A text in RFC 7644, an object in drafts before it, and some send a number.
      auto const* const text = value->if_string();
      status = value->if_integer() != nullptr ? static_cast<int>(*value->if_integer())
               : text != nullptr              ? std::atoi(text->c_str())
                                              : 0;
    }
    if (status == 200 || status == 201) {
      return settle(made.line, settled::created);
    }
    auto const* const body = result_of != nullptr ? result_of->find("response") : nullptr;
    auto const refusal = client::refusal_of(status, body != nullptr ? to_string(*body) : "");
    if (status == 409) {
      return take_conflict(std::move(made), refusal);
    }
    if (status < 400 || status >= 500) {
      may_have_run_ = true;
      stop(made, status == 0 ? std::string("the answer to /Bulk says nothing of it")
                             : to_string(refusal));
      return {};
    }
    return reject(made, settled::rejected, refusal);
  }

  [[nodiscard]] auto take_conflict(job made, client::scim_error const& why)
      -> result<void, trouble> {
    if (settings_.conflict == on_conflict::skip) {
      return settle(made.line, settled::skipped);
    }
    if (settings_.conflict == on_conflict::replace) {
      // The one that is there has the same value of what must be unique.
      for (std::string_view const name : {"userName", "externalId", "displayName"}) {
        auto const* const value = made.resource.find(name);
        if (value == nullptr || value->if_string() == nullptr) {
          continue;
        }
        std::string filter(name);
        json::append_string(filter += " eq ", *value->if_string());
        client::request wanted{.url = url() + "?"};
        scim::append_list_query(wanted.url, {.count = 2, .filter = std::move(filter)});
        made.at = job::stage::find;
        return send(std::move(wanted), std::move(made));
      }
    }
    return reject(made, settled::conflict, why);
  }

  [[nodiscard]] auto replace(job made, std::string_view body) -> result<void, trouble> {
    auto const found = scim::parse_list_response(body, {.octets_max = std::size_t{16} << 20});
    auto const* const id =
        found && found->resources.size() == 1 ? found->resources[0].find("id") : nullptr;
    if (id == nullptr || id->if_string() == nullptr) {
      return reject(made, settled::conflict,
                    {.detail = "there is a conflict, but not with one resource that can be found"});
    }
    client::request wanted{.method = "PUT", .url = url() + "/", .body = body_of(made.resource)};
    for (auto const each : *id->if_string()) {
      bool const is_plain = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                            (each >= '0' && each <= '9') || std::string_view("-._~").contains(each);
      wanted.url +=
          is_plain ? std::string(1, each) : "%" + to_hex(std::array{static_cast<std::byte>(each)});
    }
    made.at = job::stage::replace;
    return send(std::move(wanted), std::move(made));
  }

  /// Of the server, before the endpoint; and the endpoint, with its slash.
  [[nodiscard]] auto base() const -> std::string {
    auto const whole = url();
    return whole.substr(0, whole.find_last_of('/'));
  }
  [[nodiscard]] auto endpoint() const -> std::string {
    auto const whole = url();
    return whole.substr(whole.find_last_of('/'));
  }
  [[nodiscard]] auto url() const -> std::string {
    return settings_.url.substr(0, settings_.url.find_first_of("?#"));
  }

  void stop(job const& at, std::string const& why) {
    if (stopped_.empty()) {
      stopped_ = "line " + std::to_string(at.line) + ": " + why;
    }
  }

  [[nodiscard]] auto reject(job const& made, settled as, client::scim_error const& why)
      -> result<void, trouble> {
    auto const text = why.status == 0 ? why.detail : to_string(why);
    progress_.clear();
    std::cerr << "line " << made.line << ": " << text << '\n';
    if (rejects_) {
      json::object out;
      out.append("line", static_cast<std::int64_t>(made.line));
      if (why.status != 0) {
        out.append("status", why.status);
      }
      if (auto const type = to_string(why.type); !type.empty()) {
        out.append("scimType", type);
      }
      out.append("error", text);
      if (made.resource.is_null()) {
        // Octets that are no UTF-8 are replaced, so that the line can be read.
        std::string quoted;
        json::append_string(quoted, made.text);
        out.append("text", *json::parse(quoted, {.octets_max = quoted.size()}));
      } else {
        out.append("resource", made.resource);
      }
      auto const line = to_string(json::value(std::move(out))) + "\n";
      TIDEGATE_TRY_VOID(rejects_->write(line));
      rejects_octets_ += line.size();
    }
    return settle(made.line, as);
  }

  [[nodiscard]] auto settle(std::uint64_t line, settled as) -> result<void, trouble> {
    counts_.add(as);
    if (!journal_) {
      return {};
    }
    return journal_->write(std::to_string(line) + " " + static_cast<char>(as) + " " +
                           std::to_string(rejects_octets_) + "\n");
  }

  [[nodiscard]] auto sync() -> result<void, trouble> {
    synced_ = clock::now();
    if (rejects_) {
      TIDEGATE_TRY_VOID(rejects_->sync());
    }
    return journal_ ? journal_->sync() : result<void, trouble>();
  }

  [[nodiscard]] auto summarize(result<void, trouble> const& done) -> int {
    bool const is_interrupted = outcomes_->is_interrupted() && !is_complete_;
    bool const has_rejects = rejects_ && rejects_octets_ > 0;
    // When nothing can have happened there is nothing to resume.
    bool const is_resumable =
        journal_ && !is_complete_ && (counts_.all > 0 || may_have_run_ || under_way() > 0);
    if (journal_ && !is_resumable) {
      std::remove(journal_name().c_str());
    }
    if (rejects_ && !has_rejects) {
      std::remove(rejects_->name().c_str());
    }
    auto const number = [this](settled what) { return counts_.of[what]; };
    bool const is_ok =
        done && is_complete_ && number(settled::rejected) == 0 && number(settled::conflict) == 0;
    auto const retries = outcomes_->activity().retries;
    if (settings_.json) {
      json::object out;
      auto const add = [&out](std::string_view name, std::uint64_t value) {
        out.append(std::string(name), static_cast<std::int64_t>(value));
      };
      out.append("ok", is_ok);
      add("created", number(settled::created));
      add("replaced", number(settled::replaced));
      add("skipped", number(settled::skipped));
      add("conflicts", number(settled::conflict));
      add("rejected", number(settled::rejected));
      add("replayed", replayed_);
      add("retries", retries);
      out.append("seconds", std::chrono::duration<double>(clock::now() - began_).count());
      if (has_rejects) {
        out.append("rejects", rejects_->name());
      }
      if (!done) {
        out.append("error", done.error());
      }
      out.append("interrupted", is_interrupted);
      out.append("resumable", is_resumable);
      std::cout << to_string(json::value(std::move(out))) << '\n';
    } else {
      if (!done) {
        std::cerr << "error: " << done.error() << '\n';
      }
      std::cerr << number(settled::created) << " created, " << number(settled::replaced)
                << " replaced, " << number(settled::skipped) << " skipped, "
                << counted(number(settled::conflict), "conflict") << ", "
                << number(settled::rejected) << " rejected, " << retries
                << (retries == 1 ? " retry" : " retries") << '\n';
      if (has_rejects) {
        std::cerr << "what was not taken is in " << rejects_->name() << '\n';
      }
      if (is_resumable) {
        std::cerr << "not complete; --resume goes on from here\n";
      }
    }
    return is_interrupted ? exit_interrupted : is_ok ? exit_success : exit_failure;
  }

  import_settings const& settings_;
  std::vector<client::field> fields_;
  std::string const schema_;  // of resources that do not say theirs
  clock::time_point const began_;
  int file_ = -1;
  std::string digest_;
  std::uint64_t total_ = 0;

  // What keys are made of.
  std::string seed_;
  idempotency::wall_time made_{};

  std::optional<durable_file> journal_;
  std::optional<durable_file> rejects_;
  std::uint64_t rejects_octets_ = 0;
  clock::time_point synced_{};
  std::set<std::uint64_t> settled_;  // before this run
  counts counts_;
  std::uint64_t replayed_ = 0;

  bulk_limits bulk_;
  batch next_;                         // is being filled
  std::map<std::uint64_t, job> jobs_;  // by their tags; with `batches_`, as many as `parallel`
  std::map<std::uint64_t, batch> batches_;
  std::uint64_t last_tag_ = 0;
  std::string stopped_;  // why there is no sense in going on
  bool is_complete_ = false;
  bool may_have_run_ = false;  // what is not settled
  progress progress_;
  std::unique_ptr<outcomes> outcomes_;
};

}  // namespace

auto run_scim_import(import_settings const& settings) -> int {
  return importer(settings).run();
}

}  // namespace tidegate::app
