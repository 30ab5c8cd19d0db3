// SPDX-License-Identifier: Apache-2.0
#include "scim/settings.hpp"

#include "client/completion_queue.hpp"
#include "client/progress.hpp"
#include "commands.hpp"
#include "scim/durable_file.hpp"

#include <tidegate/client/scim_range.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/csv.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

namespace tidegate::app {

namespace {

using client::scim_position;
using client::scim_walk;
using client::walk_request;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// The state is written that often, so that little is done twice after a crash.
constexpr auto between_states = 1s;
constexpr std::size_t state_octets_max = std::size_t{1} << 20;
/// Of one resource, as it was in an answer.
constexpr json::limits line_limits{.octets_max = std::size_t{16} << 20, .depth_max = 32};

/// Where an export is.
struct export_state {
  json::value query;  // what it is an export of
  scim_position place;
  std::uint64_t octets = 0;
  std::uint64_t resources = 0;
  std::uint64_t total = 0;  // as the server said at first
  bool is_complete = false;
};

[[nodiscard]] auto to_json_text(export_state const& state) -> result<std::string, error_text> {
  auto const text = to_json(state.place);
  auto place = json::parse(text, {.octets_max = text.size()});
  if (!place) {
    return failure("cannot keep the position: " + to_string(place.error()));
  }
  json::object out;
  out.append("query", state.query);
  out.append("place", *std::move(place));
  out.append("octets", static_cast<std::int64_t>(state.octets));
  out.append("resources", static_cast<std::int64_t>(state.resources));
  out.append("total", static_cast<std::int64_t>(state.total));
  out.append("complete", state.is_complete);
  auto made = to_string(json::value(std::move(out))) + "\n";
  return made.size() <= state_octets_max
             ? result<std::string, error_text>(std::move(made))
             : failure(error_text("cannot keep the position: it is too long"));
}

[[nodiscard]] auto parse_state(std::string_view text) -> std::optional<export_state> {
  auto const read = json::parse(text, {.octets_max = state_octets_max});
  if (!read) {
    return std::nullopt;
  }
  auto const* const query = read->find("query");
  auto const* const place = read->find("place");
  auto const where = place == nullptr ? std::nullopt : client::scim_position_of(*place);
  auto const octets = number_of(*read, "octets");
  auto const resources = number_of(*read, "resources");
  auto const total = number_of(*read, "total");
  auto const* const complete = read->find("complete");
  if (query == nullptr || !where || !octets || !resources || !total || complete == nullptr) {
    return std::nullopt;
  }
  return export_state{*query, *where, *octets, *resources, *total, *complete == json::value(true)};
}

[[nodiscard]] auto query_of(export_settings const& settings) -> client::scim_query {
  return {.url = settings.url,
          .fields = scim_fields_of(settings),
          .filter = settings.filter,
          .sort_by = settings.sort_by,
          .attributes = settings.attributes,
          .excluded_attributes = settings.excluded_attributes,
          .page_size = settings.page_size};
}

/// What must be the same for an export to be resumed. Fields are not kept: they have secrets.
[[nodiscard]] auto identity_of(export_settings const& settings) -> json::value {
  auto const list = [](std::vector<std::string> const& names) {
    return json::value(json::array(names.begin(), names.end()));
  };
  json::object out;
  out.append("url", settings.url);
  out.append("filter", settings.filter);
  out.append("sort_by", settings.sort_by);
  out.append("attributes", list(settings.attributes));
  out.append("excluded_attributes", list(settings.excluded_attributes));
  out.append("page_size", static_cast<std::int64_t>(settings.page_size));
  return out;
}

/// One export, from the command line to its exit status.
class exporter {
 public:
  explicit exporter(export_settings const& settings)
      : settings_(settings), walk_(query_of(settings)), began_(clock::now()) {
    state_.query = identity_of(settings);
    state_.place = walk_.position();
  }

  [[nodiscard]] auto run() -> int {
    auto opened = completion_queue::open(session_options_of(settings_, 1));
    if (!opened) {
      std::cerr << "error: " << opened.error() << '\n';
      return exit_failure;
    }
    queue_ = *std::move(opened);
    if (auto const ready = has_file() ? open_files() : open_stream(); !ready) {
      std::cerr << "error: " << ready.error() << '\n';
      return exit_usage;
    }
    auto done =
        state_.is_complete || queue_->is_interrupted() ? result<void, error_text>() : copy();
    if (done && !queue_->is_interrupted()) {
      done = finish();
      is_resumable_ = !done && has_file();
    } else if (has_file() && state_.octets > 0) {
      // What is there is kept, whatever happened; but where it did not get to the disk, another try
      // that goes well would prove nothing, and the state from before holds.
      is_resumable_ = true;
      if (auto const kept = has_lost_ ? result<void, error_text>() : keep(); !kept && done) {
        done = failure(kept.error());
      }
    } else if (has_file()) {
      std::remove(partial_name().c_str());
      std::remove(state_name().c_str());
    }
    progress_.clear();
    return summarize(done);
  }

 private:
  [[nodiscard]] auto has_file() const -> bool { return settings_.output != "-"; }
  [[nodiscard]] auto state_name() const -> std::string { return settings_.output + ".state"; }
  [[nodiscard]] auto partial_name() const -> std::string { return settings_.output + ".partial"; }

  /// Rows can be written when all columns are known, so CSV takes a file on its way.
  [[nodiscard]] auto open_stream() -> result<void, error_text> {
    if (settings_.resume) {
      return failure(error_text("--resume needs --output"));
    }
    if (settings_.format == scim_format::csv) {
      TIDEGATE_TRY(partial_, durable_file::temporary());
    }
    return {};
  }

  [[nodiscard]] auto open_files() -> result<void, error_text> {
    TIDEGATE_TRY(auto const text, read_file(state_name(), state_octets_max));
    if (!settings_.resume && text) {
      return failure(state_name() +
                     " exists, of an export that is not complete: use --resume to continue it, "
                     "or remove the file to start again");
    }
    if (settings_.resume && !text) {
      return failure("nothing to resume: " + state_name() + " does not exist");
    }
    if (!text) {
      TIDEGATE_TRY(partial_, durable_file::open(partial_name()));
      TIDEGATE_TRY_VOID(partial_->truncate(0));
      return keep();
    }
    auto state = parse_state(*text);
    if (!state) {
      return failure("invalid state " + state_name() + " (expected one of 'tidegate scim export')");
    }
    if (state->query != state_.query) {
      return failure(state_name() + " is of another export: " + to_string(state->query));
    }
    state_ = *std::move(state);
    if (state_.is_complete && !std::filesystem::exists(partial_name())) {
      return {};  // it ended between its last two steps
    }
    TIDEGATE_TRY(partial_, durable_file::open(partial_name()));
    TIDEGATE_TRY_VOID(partial_->truncate(state_.octets));
    return recall();
  }

  /// Tells the walk what was given already. A signal ends it early.
  [[nodiscard]] auto recall() -> result<void, error_text> {
    walk_ = scim_walk(query_of(settings_), state_.place);
    line_reader lines(*partial_, state_.octets);
    for (std::uint64_t number = 0;; ++number) {
      TIDEGATE_TRY(auto const line, lines.next());
      if (!line || is_interrupted_at(number)) {
        return {};
      }
      auto const resource = json::parse(*line, line_limits);
      auto const* const id = resource ? resource->find("id") : nullptr;
      if (!resource) {
        return failure(partial_name() + " was changed after it was written");
      }
      if (id != nullptr && id->if_string() != nullptr) {
        walk_.has_seen(*id->if_string());
      }
    }
  }

  /// Looks for signals now and then on the way through a file.
  [[nodiscard]] auto is_interrupted_at(std::uint64_t line) -> bool {
    return line % 1024 == 0 && queue_->is_interrupted_now();
  }

  /// Until the end, an error or an interruption.
  [[nodiscard]] auto copy() -> result<void, error_text> {
    for (;;) {
      auto const step = walk_.next();
      if (!step) {
        TIDEGATE_TRY_VOID(flush());
        fault_ = step.error();
        return failure(to_string(step.error()));
      }
      if (auto const* const resource = std::get_if<json::value const*>(&*step)) {
        json::append(buffer_, **resource);
        buffer_ += '\n';
        ++buffered_;
        continue;
      }
      TIDEGATE_TRY_VOID(flush());
      auto const* const wanted = std::get_if<walk_request>(&*step);
      if (wanted == nullptr) {
        return {};
      }
      if (has_file() && clock::now() - kept_ >= between_states) {
        TIDEGATE_TRY_VOID(keep());
      }
      TIDEGATE_TRY(bool const has_answer, ask(*wanted));
      if (!has_answer) {
        return {};
      }
    }
  }

  /// False when a signal ended the wait.
  [[nodiscard]] auto ask(walk_request const& wanted) -> result<bool, error_text> {
    auto request = client::to_request(wanted, walk_.query());
    request.time_max = longest;
    ++requests_;
    if (auto const sent = queue_->send(std::move(request), requests_); !sent) {
      return failure(to_string(sent.error()));
    }
    for (;;) {
      auto const came = queue_->wait(progress::tick);
      if (queue_->is_interrupted()) {
        return false;
      }
      if (came && came->answer) {
        walk_.take(came->answer->status, came->answer->body);
        if (state_.total == 0) {
          state_.total = walk_.total_results().value_or(0);
        }
        return true;
      }
      if (came) {
        walk_.take(came->answer.error());
        return true;
      }
      progress_.show(state_.resources, state_.total, queue_->activity());
    }
  }

  /// Writes the page that was left. The state moves on only when it is written.
  [[nodiscard]] auto flush() -> result<void, error_text> {
    if (partial_) {
      TIDEGATE_TRY_VOID(partial_->write(buffer_));
    } else {
      TIDEGATE_TRY_VOID(print(buffer_));
    }
    state_.octets += buffer_.size();
    state_.resources += std::exchange(buffered_, 0);
    state_.place = walk_.position();
    buffer_.clear();
    return {};
  }

  [[nodiscard]] static auto print(std::string_view text) -> result<void, error_text> {
    std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
    return std::cout.flush() ? result<void, error_text>()
                             : failure(error_text("cannot write to standard output"));
  }

  /// Puts what was written on the disk, then the state that says so.
  [[nodiscard]] auto keep() -> result<void, error_text> {
    if (auto const synced = partial_->sync(); !synced) {
      has_lost_ = true;
      return synced;
    }
    kept_ = clock::now();
    TIDEGATE_TRY(auto const text, to_json_text(state_));
    return replace_file(state_name(), text);
  }

  [[nodiscard]] auto finish() -> result<void, error_text> {
    if (!has_file()) {
      return settings_.format == scim_format::csv
                 ? write_rows([](std::string_view text) { return print(text); })
                 : result<void, error_text>();
    }
    if (partial_) {
      state_.is_complete = true;
      TIDEGATE_TRY_VOID(keep());
      if (settings_.format == scim_format::csv) {
        auto const made = settings_.output + ".new";
        TIDEGATE_TRY(auto table, durable_file::open(made));
        TIDEGATE_TRY_VOID(table.truncate(0));
        if (auto const written =
                write_rows([&](std::string_view text) { return table.write(text); });
            !written) {
          std::remove(made.c_str());  // it is made of FILE.partial again
          return written;
        }
        TIDEGATE_TRY_VOID(table.sync());
        TIDEGATE_TRY_VOID(rename_file(made, settings_.output));
        std::remove(partial_name().c_str());
      } else {
        TIDEGATE_TRY_VOID(rename_file(partial_name(), settings_.output));
      }
    }
    std::remove(state_name().c_str());
    return {};
  }

  /// Makes a table of the lines of JSON.
  template <class Write>
  [[nodiscard]] auto write_rows(Write const& write) -> result<void, error_text> {
    scim::csv_columns columns;
    TIDEGATE_TRY_VOID(for_each_resource([&](json::value const& each) -> result<void, error_text> {
      return columns.add(each) ? result<void, error_text>()
                               : failure(error_text("too many columns; --attributes says "
                                                    "which are wanted"));
    }));
    std::string out;
    columns.append_header(out);
    TIDEGATE_TRY_VOID(for_each_resource([&](json::value const& each) -> result<void, error_text> {
      columns.append_row(out, each);
      if (out.size() < (std::size_t{1} << 18)) {
        return {};
      }
      auto const written = write(std::exchange(out, std::string()));
      return written;
    }));
    return write(out);
  }

  template <class F>
  [[nodiscard]] auto for_each_resource(F const& f) -> result<void, error_text> {
    line_reader lines(*partial_, state_.octets);
    for (std::uint64_t number = 0;; ++number) {
      TIDEGATE_TRY(auto const line, lines.next());
      if (!line) {
        return {};
      }
      if (is_interrupted_at(number)) {
        return failure(error_text("interrupted"));
      }
      auto const resource = json::parse(*line, line_limits);
      if (!resource) {
        return failure(partial_->name() + " was changed after it was written");
      }
      TIDEGATE_TRY_VOID(f(*resource));
    }
  }

  [[nodiscard]] auto summarize(result<void, error_text> const& done) -> int {
    bool const is_interrupted = queue_->is_interrupted();
    auto const retries = queue_->activity().retries;
    auto const seconds = std::chrono::duration<double>(clock::now() - began_).count();
    // Where the resources themselves are on standard output, it has nothing else.
    auto& summary = has_file() ? std::cout : std::cerr;
    if (settings_.json) {
      json::object out;
      out.append("ok", done && !is_interrupted);
      out.append("resources", static_cast<std::int64_t>(state_.resources));
      out.append("total", static_cast<std::int64_t>(state_.total));
      out.append("requests", static_cast<std::int64_t>(requests_));
      out.append("retries", static_cast<std::int64_t>(retries));
      out.append("restarts", static_cast<std::int64_t>(walk_.restarts()));
      out.append("seconds", seconds);
      if (has_file()) {
        out.append("output", settings_.output);
      }
      if (fault_) {
        out.append("fault", client::name_of(fault_->fault));
      }
      if (!done) {
        out.append("error", done.error());
      }
      out.append("interrupted", is_interrupted);
      out.append("resumable", is_resumable_);
      summary << to_string(json::value(std::move(out))) << '\n';
    } else {
      if (!done) {
        std::cerr << "error: " << done.error() << '\n';
      }
      std::cerr << counted(state_.resources, "resource") << ", " << counted(requests_, "request")
                << ", " << retries << (retries == 1 ? " retry" : " retries") << '\n';
      if (done && !is_interrupted && state_.resources < state_.total) {
        std::cerr << "warning: the server said at first that there are " << state_.total
                  << " resources\n";
      }
      if (is_resumable_) {
        std::cerr << "not complete; use --resume to continue\n";
      }
    }
    return is_interrupted ? exit_interrupted : done ? exit_success : exit_failure;
  }

  export_settings const& settings_;
  export_state state_;
  scim_walk walk_;
  clock::time_point const began_;
  clock::time_point kept_{};
  std::optional<durable_file> partial_;
  std::string buffer_;          // of one page
  std::uint64_t buffered_ = 0;  // resources in it
  std::uint64_t requests_ = 0;
  bool is_resumable_ = false;
  bool has_lost_ = false;  // something that was written, perhaps
  std::optional<client::scim_error> fault_;
  progress progress_;
  std::unique_ptr<completion_queue> queue_;
};

}  // namespace

auto run_scim_export(export_settings const& settings) -> int {
  return exporter(settings).run();
}

}  // namespace tidegate::app
