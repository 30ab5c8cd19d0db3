// SPDX-License-Identifier: Apache-2.0
#include "scim/settings.hpp"

#include "client/completion_queue.hpp"
#include "client/progress.hpp"
#include "commands.hpp"
#include "scim/import_journal.hpp"
#include "scim/import_requests.hpp"
#include "scim/records.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/writer.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_response.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

namespace tidegate::app {

namespace {

using client::response;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using client_answer = result<response, client::client_error>;

/// So long after Ctrl-C answers to what is under way are waited for.
constexpr auto last_wait = 5s;

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

/// Whether an answer of 409 to a first request leaves open what became of it: its key is in use, or
/// how its use ended is unknown. Other conflicts are about the resource.
[[nodiscard]] auto is_of_key(response const& answer) -> bool {
  constexpr std::string_view problem = "application/problem+json";
  auto const type = answer.fields.find("content-type").value_or("");
  return answer.attempts > 1 || equal_ignoring_case(type.substr(0, problem.size()), problem);
}

/// Whether a request that was refused may have been carried out all the same.
[[nodiscard]] auto may_have_run(response const& answer) -> bool {
  constexpr std::array harmless = {401, 404, 405};
  return answer.attempts > 1 || std::ranges::find(harmless, answer.status) == harmless.end();
}

/// Whether an answer is about the server or the import as a whole: other lines would get it, too.
[[nodiscard]] auto ends_import(response const& answer, job::stage at) -> bool {
  constexpr std::array senseless = {401, 404, 405, 408, 425, 429, 501, 502, 503, 504};
  auto const status = answer.status;
  bool const is_gone = at == job::stage::replace && status == 404;
  // A line that perhaps was carried out is not settled.
  bool const is_open = at == job::stage::create && status == 409 && is_of_key(answer);
  return status < 400 || is_open ||
         (std::ranges::find(senseless, status) != senseless.end() && !is_gone);
}

/// The status of one result of a bulk request: a text in RFC 7644, an object in drafts before it,
/// and some send a number. 0 when there is none.
[[nodiscard]] auto status_of(json::value const* result_of) -> int {
  auto const* const value = result_of != nullptr ? result_of->find("status") : nullptr;
  if (value == nullptr) {
    return 0;
  }
  auto const* const text = value->if_string();
  return value->if_integer() != nullptr ? static_cast<int>(*value->if_integer())
         : text != nullptr              ? std::atoi(text->c_str())
                                        : 0;
}

/// The file that is imported.
struct source_file {
  engine::descriptor opened;  // of standard input none
  std::string digest;
  std::uint64_t lines = 0;  // about as many

  [[nodiscard]] auto descriptor() const -> int {
    return opened.is_open() ? opened.get() : STDIN_FILENO;
  }
};

/// Reads it once, for its digest. `is_interrupted` is asked now and then.
template <class F>
[[nodiscard]] auto digest_file(source_file& file, std::string const& name, F is_interrupted)
    -> result<void, error_text> {
  sha256 hash;
  std::string piece(std::size_t{1} << 18, '\0');
  for (;;) {
    auto const got = ::read(file.descriptor(), piece.data(), piece.size());
    if (got < 0) {
      return failure("cannot read " + name + ": " + std::strerror(errno));
    }
    if (got == 0) {
      break;
    }
    if (is_interrupted()) {
      return failure(error_text("interrupted"));
    }
    auto const octets = std::string_view(piece).substr(0, static_cast<std::size_t>(got));
    hash.update(octets);
    file.lines += static_cast<std::uint64_t>(std::ranges::count(octets, '\n'));
  }
  file.digest = to_hex(hash.finish());
  return ::lseek(file.descriptor(), 0, SEEK_SET) == 0
             ? result<void, error_text>()
             : failure("cannot read " + name + " twice: " + std::strerror(errno));
}

/// One import, from the command line to its exit status.
class importer {
 public:
  explicit importer(import_settings const& settings)
      : settings_(settings), requests_(settings), journal_(settings), began_(clock::now()) {}

  [[nodiscard]] auto run() -> int {
    auto opened = completion_queue::open(session_options_of(settings_, settings_.parallel));
    if (!opened) {
      std::cerr << "error: " << opened.error() << '\n';
      return exit_failure;
    }
    queue_ = *std::move(opened);
    if (auto const ready = prepare(); !ready) {
      std::cerr << "error: " << ready.error() << '\n';
      return queue_->is_interrupted() ? exit_interrupted : exit_usage;
    }
    auto done = work();
    if (journal_.is_open()) {
      if (auto const kept = journal_.sync(); !kept && done) {
        done = failure(kept.error());
      }
    }
    progress_.clear();
    return summarize(done);
  }

 private:
  [[nodiscard]] auto has_file() const -> bool { return settings_.file != "-"; }

  /// Opens all files; the journal says what was settled before. Errors are of the command line.
  [[nodiscard]] auto prepare() -> result<void, error_text> {
    std::array<std::byte, 16> fresh{};
    if (::getrandom(fresh.data(), fresh.size(), 0) != static_cast<ssize_t>(fresh.size())) {
      return failure(error_text("cannot get random numbers from the system"));
    }
    identity_.seed = to_hex(fresh);
    identity_.began =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    if (has_file()) {
      file_.opened = engine::descriptor(::open(settings_.file.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file_.opened.is_open()) {
        return failure("cannot read " + settings_.file + ": " + std::strerror(errno));
      }
      TIDEGATE_TRY_VOID(
          digest_file(file_, settings_.file, [this] { return queue_->is_interrupted_now(); }));
      identity_.digest = file_.digest;
    }
    TIDEGATE_TRY_VOID(journal_.check_rejects());
    if (has_file()) {
      if (settings_.bulk > 0 && !settings_.resume && !journal_.exists()) {
        TIDEGATE_TRY_VOID(ask_for_bulk());
      }
      TIDEGATE_TRY(identity_, journal_.open(std::move(identity_)));
    } else if (settings_.resume) {
      return failure(error_text("--resume needs a file"));
    }
    return journal_.open_rejects();
  }

  /// Whether the server has /Bulk, and for how much. One that does not say has not.
  [[nodiscard]] auto ask_for_bulk() -> result<void, error_text> {
    if (auto const sent = queue_->send(requests_.config(), 0); !sent) {
      return {};  // the first line meets the same
    }
    std::optional<completion> came;
    while (!came) {
      came = queue_->wait(progress::tick);
      if (queue_->is_interrupted()) {
        return failure(error_text("interrupted"));
      }
    }
    if (came->answer && came->answer->status == 200) {
      identity_.bulk = parse_bulk_limits(came->answer->body, settings_.bulk);
    }
    return {};
  }

  /// Until all is settled, an error ends it, or a signal comes.
  [[nodiscard]] auto work() -> result<void, error_text> {
    result<void, error_text> waited;
    scim_record_reader reader(file_.descriptor(), settings_.format, [&] {
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
            send_batch();
          }
        } else if (has_bulk() || !journal_.was_settled((*record)->line)) {
          TIDEGATE_TRY_VOID(begin(**std::move(record)));
        }
      }
      if (under_way() == 0) {
        break;
      }
      TIDEGATE_TRY_VOID(pass());
      auto const now = clock::now();
      if (queue_->is_interrupted() && !ends) {
        ends = now + last_wait;
      }
      if (ends && now > *ends) {
        break;
      }
    }
    is_complete_ = is_read && stopped_.empty() && under_way() == 0;
    return stopped_.empty() ? result<void, error_text>() : failure(stopped_);
  }

  /// How many requests.
  [[nodiscard]] auto under_way() const -> std::size_t { return jobs_.size() + batches_.size(); }
  [[nodiscard]] auto has_bulk() const -> bool { return identity_.bulk.operations > 0; }
  /// Whether no more lines are to be begun.
  [[nodiscard]] auto is_ending() const -> bool {
    return !stopped_.empty() || queue_->is_interrupted();
  }

  /// Until there is something to read, or no use in it; answers are taken meanwhile.
  [[nodiscard]] auto wait_for_input() -> result<void, error_text> {
    do {
      TIDEGATE_TRY_VOID(pass(file_.descriptor()));
    } while (!queue_->has_input() && !is_ending());
    return {};
  }

  /// Waits until something happens, for a moment at most, and does what follows from it.
  [[nodiscard]] auto pass(int input = -1) -> result<void, error_text> {
    if (auto came = queue_->wait(progress::tick, input)) {
      TIDEGATE_TRY_VOID(take(came->tag, std::move(came->answer)));
    }
    TIDEGATE_TRY_VOID(journal_.sync_sometimes());
    progress_.show(journal_.counts().all, file_.lines, queue_->activity());
    return {};
  }

  // ── requests ───────────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto begin(scim_record record) -> result<void, error_text> {
    job made{.line = record.line, .text = std::move(record.text)};
    made.was_settled = journal_.was_settled(made.line);
    if (!record.resource) {
      return made.was_settled
                 ? result<void, error_text>()
                 : reject(made, settled::rejected, {.detail = record.resource.error()});
    }
    made.resource = *std::move(record.resource);
    if (has_bulk()) {
      add_to_batch(std::move(made));
    } else {
      create(std::move(made));
    }
    return {};
  }

  /// Which lines go together depends on the file alone: what was under way when the program ended
  /// is sent again as the same request.
  void add_to_batch(job made) {
    auto const operation = requests_.bulk_operation(made.line, made.resource);
    auto const room = identity_.bulk.octets - bulk_frame_octets;
    if (next_.operations.size() + 1 + operation.size() > room) {
      send_batch();
    }
    if (operation.size() > room) {  // the server may still take it by itself
      if (!made.was_settled) {
        create(std::move(made));
      }
      return;
    }
    next_.operations.append(next_.operations.empty() ? "" : ",").append(operation);
    next_.jobs.push_back(std::move(made));
    if (next_.jobs.size() == identity_.bulk.operations) {
      send_batch();
    }
  }

  void send_batch() {
    auto made = std::exchange(next_, {});
    if (std::ranges::all_of(made.jobs, &job::was_settled)) {
      return;
    }
    auto const operations = std::exchange(made.operations, {});
    if (auto const tag = send(requests_.bulk(identity_, made.jobs.front().line, operations))) {
      batches_.emplace(*tag, std::move(made));
    }
  }

  void create(job made) {
    auto wanted = requests_.create(identity_, made.line, made.text, made.resource);
    send(std::move(wanted), std::move(made));
  }

  void send(client::request wanted, job made) {
    if (auto const tag = send(std::move(wanted))) {
      jobs_.emplace(*tag, std::move(made));
    }
  }

  /// Its tag. Nothing when it could not be sent, which ends the import.
  [[nodiscard]] auto send(client::request wanted) -> std::optional<std::uint64_t> {
    auto const tag = ++last_tag_;
    if (auto const sent = queue_->send(std::move(wanted), tag); !sent) {
      stopped_ = to_string(sent.error());
      return std::nullopt;
    }
    return tag;
  }

  // ── answers ────────────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto take(std::uint64_t tag, client_answer answer) -> result<void, error_text> {
    if (auto found = batches_.extract(tag)) {
      return take_batch(std::move(found.mapped()), std::move(answer));
    }
    auto made = std::move(jobs_.extract(tag).mapped());
    if (!answer) {
      take_error(made, answer.error());
      return {};
    }
    auto const status = answer->status;
    auto const refusal = client::refusal_of(status, answer->body);
    if (made.at == job::stage::create && (status == 201 || status == 200)) {
      replayed_ += answer->fields.find("idempotent-replayed") == "true" ? 1U : 0U;
      return journal_.settle(made.line, settled::created);
    }
    if (made.at == job::stage::replace && (status == 200 || status == 204)) {
      return journal_.settle(made.line, settled::replaced);
    }
    if (made.at == job::stage::find && status == 200) {
      return replace(std::move(made), answer->body);
    }
    if (made.at == job::stage::create && status == 409 && scim::parse_error(answer->body)) {
      return take_conflict(std::move(made), refusal);
    }
    if (ends_import(*answer, made.at)) {
      may_have_run_ = may_have_run_ || may_have_run(*answer);
      stop(made, to_string(refusal));
      return {};
    }
    return reject(made, settled::rejected, refusal);
  }

  /// There is no answer. The line is not settled: resumed, it is sent again with the same key.
  void take_error(job const& made, client::client_error const& error) {
    may_have_run_ = may_have_run_ || error.may_have_run;
    if (error.fault != client::client_fault::cancelled) {
      stop(made, to_string(error));
    }
  }

  [[nodiscard]] auto take_batch(batch made, client_answer answer) -> result<void, error_text> {
    auto const& first = made.jobs.front();
    if (!answer) {
      take_error(first, answer.error());
      return {};
    }
    auto const body = json::parse(answer->body, {.octets_max = answer_octets_max});
    auto const* const operations = body ? body->find("Operations") : nullptr;
    auto const* const results = operations != nullptr ? operations->if_array() : nullptr;
    if (answer->status != 200 || results == nullptr) {
      may_have_run_ = may_have_run_ || may_have_run(*answer);
      stop(first, answer->status == 200
                      ? std::string("the answer to /Bulk is not a BulkResponse")
                      : to_string(client::refusal_of(answer->status, answer->body)));
      return {};
    }
    bool const is_replayed = answer->fields.find("idempotent-replayed") == "true";
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
  [[nodiscard]] auto take_result(job made, json::value const* result_of)
      -> result<void, error_text> {
    auto const status = status_of(result_of);
    if (status == 200 || status == 201) {
      return journal_.settle(made.line, settled::created);
    }
    auto const* const body = result_of != nullptr ? result_of->find("response") : nullptr;
    auto const refusal = client::refusal_of(status, body != nullptr ? to_string(*body) : "");
    if (status == 409) {
      return take_conflict(std::move(made), refusal);
    }
    if (status < 400 || status >= 500) {
      may_have_run_ = true;
      stop(made, status == 0 ? std::string("the answer to /Bulk has no status for it")
                             : to_string(refusal));
      return {};
    }
    return reject(made, settled::rejected, refusal);
  }

  [[nodiscard]] auto take_conflict(job made, client::scim_error const& why)
      -> result<void, error_text> {
    if (settings_.conflict == on_conflict::skip) {
      return journal_.settle(made.line, settled::skipped);
    }
    if (settings_.conflict == on_conflict::replace) {
      if (auto wanted = requests_.find(made.resource)) {
        made.at = job::stage::find;
        send(*std::move(wanted), std::move(made));
        return {};
      }
    }
    return reject(made, settled::conflict, why);
  }

  [[nodiscard]] auto replace(job made, std::string_view body) -> result<void, error_text> {
    auto const found = scim::parse_list_response(body, {.octets_max = answer_octets_max});
    auto const* const id =
        found && found->resources.size() == 1 ? found->resources[0].find("id") : nullptr;
    if (id == nullptr || id->if_string() == nullptr) {
      return reject(made, settled::conflict,
                    {.detail = "there is a conflict, but not with one resource that can be found"});
    }
    auto wanted = requests_.replace(*id->if_string(), made.resource);
    made.at = job::stage::replace;
    send(std::move(wanted), std::move(made));
    return {};
  }

  void stop(job const& at, std::string const& why) {
    if (stopped_.empty()) {
      stopped_ = "line " + std::to_string(at.line) + ": " + why;
    }
  }

  [[nodiscard]] auto reject(job const& made, settled as, client::scim_error const& why)
      -> result<void, error_text> {
    progress_.clear();
    std::cerr << "line " << made.line << ": " << message_of(why) << '\n';
    return journal_.reject({made.line, made.text, made.resource, why}, as);
  }

  [[nodiscard]] auto summarize(result<void, error_text> const& done) -> int {
    auto const& counts = journal_.counts();
    bool const is_ok = done && is_complete_ && counts.count(settled::rejected) == 0 &&
                       counts.count(settled::conflict) == 0;
    bool const is_interrupted = queue_->is_interrupted() && !is_complete_;
    // When nothing can have happened there is nothing to resume.
    bool const is_resumable =
        journal_.is_open() && !is_complete_ && (counts.all > 0 || may_have_run_ || under_way() > 0);
    auto const rejects = journal_.close_rejects();
    if (journal_.is_open() && !is_resumable) {
      journal_.remove();
    }
    if (!settings_.json) {
      print_summary(done, rejects, is_resumable);
    } else {
      std::string line;
      json::writer out(line);
      out.begin_object()
          .member("ok", is_ok)
          .member("created", counts.count(settled::created))
          .member("replaced", counts.count(settled::replaced))
          .member("skipped", counts.count(settled::skipped))
          .member("conflicts", counts.count(settled::conflict))
          .member("rejected", counts.count(settled::rejected))
          .member("replayed", replayed_)
          .member("retries", queue_->activity().retries)
          .member_raw(
              "seconds",
              to_string(json::value(std::chrono::duration<double>(clock::now() - began_).count())));
      if (!rejects.empty()) {
        out.member("rejects", rejects);
      }
      if (!done) {
        out.member("error", done.error());
      }
      out.member("interrupted", is_interrupted).member("resumable", is_resumable).end_object();
      std::cout << line << '\n';
    }
    return is_interrupted ? exit_interrupted : is_ok ? exit_success : exit_failure;
  }

  void print_summary(result<void, error_text> const& done, std::string const& rejects,
                     bool is_resumable) const {
    auto const& counts = journal_.counts();
    auto const retries = queue_->activity().retries;
    std::cerr << (done ? "" : "error: " + done.error() + "\n") << counts.count(settled::created)
              << " created, " << counts.count(settled::replaced) << " replaced, "
              << counts.count(settled::skipped) << " skipped, "
              << counted(counts.count(settled::conflict), "conflict") << ", "
              << counts.count(settled::rejected) << " rejected, " << retries
              << (retries == 1 ? " retry\n" : " retries\n")
              << (rejects.empty() ? "" : "rejected lines are in " + rejects + "\n")
              << (is_resumable ? "not complete; use --resume to continue\n" : "");
  }

  import_settings const& settings_;
  import_requests const requests_;
  import_journal journal_;
  clock::time_point const began_;
  source_file file_;
  import_identity identity_;

  batch next_;                         // is being filled
  std::map<std::uint64_t, job> jobs_;  // by their tags; with `batches_`, as many as `parallel`
  std::map<std::uint64_t, batch> batches_;
  std::uint64_t last_tag_ = 0;
  std::uint64_t replayed_ = 0;
  std::string stopped_;  // why there is no sense in continuing
  bool is_complete_ = false;
  bool may_have_run_ = false;  // what is not settled
  progress progress_;
  std::unique_ptr<completion_queue> queue_;
};

}  // namespace

auto run_scim_import(import_settings const& settings) -> int {
  return importer(settings).run();
}

}  // namespace tidegate::app
