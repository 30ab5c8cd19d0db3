// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "command_line.hpp"
#include "scim/settings.hpp"

#include <tidegate/http/field.hpp>

#include <CLI/CLI.hpp>

#include <memory>
#include <string_view>

namespace tidegate::app {

namespace {

[[nodiscard]] auto format_named(std::string_view text) -> scim_format {
  return text == "csv" ? scim_format::csv : scim_format::jsonl;
}

[[nodiscard]] auto conflict_named(std::string_view text) -> on_conflict {
  return text == "skip"      ? on_conflict::skip
         : text == "replace" ? on_conflict::replace
                             : on_conflict::reject;
}

void add_common_options(CLI::App& command, scim_settings& settings) {
  command
      .add_option("URL", settings.url,
                  "Of the resources, such as https://example.com/scim/v2/Users; without a scheme: "
                  "http for this machine, else https")
      ->required();
  add_token_options(command, settings);
  command.add_flag("--resume", settings.resume, "Go on with what was interrupted");
  command.add_flag("--json", settings.json, "The summary as one JSON object");
  add_client_options(command, settings);
}

void add_export(CLI::App& scim, int& status) {
  auto* const command =
      scim.add_subcommand("export", "Write the resources of a SCIM server to a file");
  auto const settings = std::make_shared<export_settings>();
  auto const format = std::make_shared<std::string>("jsonl");
  add_common_options(*command, *settings);
  command->add_option("--filter", settings->filter, "Only what matches this filter")
      ->type_name("FILTER");
  command->add_option("--format", *format, "One JSON object a line, or a table")
      ->check(one_of({"jsonl", "csv"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("-o,--output", settings->output,
                   "The file; - is standard output, which cannot be resumed")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--sort-by", settings->sort_by,
                   "The attribute to sort by; by id where the server can")
      ->type_name("NAME");
  command
      ->add_option("--attributes", settings->attributes,
                   "Only these attributes, with commas between")
      ->type_name("NAME")
      ->delimiter(',');
  command
      ->add_option("--excluded-attributes", settings->excluded_attributes,
                   "All but these attributes")
      ->type_name("NAME")
      ->delimiter(',');
  command
      ->add_option("--page-size", settings->page_size,
                   "Resources on a page; 0: as the server likes")
      ->check(number_within(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      R"(Walks by cursor, or by index where the server has none, at the pace that the
server allows. With --output, resources are kept in FILE.partial and the place
in FILE.state until all are there; after Ctrl-C, an error or a crash --resume
continues, with nothing lost or twice.

The token: --token, --token-file, or the variable TIDEGATE_TOKEN.

Examples:
  tidegate scim export -o users.jsonl https://example.com/scim/v2/Users
  tidegate scim export --format csv --attributes userName,emails URL > users.csv

Exit status: 0 all is there; 1 it is not, as far as can be known, and standard
error says why; 2 the command line is wrong, or there is nothing to resume; 130
interrupted.)");
  command->callback([settings, format, &status] {
    settings->url = with_scheme(settings->url);
    settings->format = format_named(*format);
    status = run_scim_export(*settings);
  });
}

void add_import(CLI::App& scim, int& status) {
  auto* const command =
      scim.add_subcommand("import", "Create the resources of a file on a SCIM server");
  auto const settings = std::make_shared<import_settings>();
  auto const format = std::make_shared<std::string>();
  auto const conflict = std::make_shared<std::string>("reject");
  add_common_options(*command, *settings);
  command->add_option("FILE", settings->file, "The resources; - is standard input")->required();
  command->add_option("--format", *format, "Without it, csv where FILE ends with .csv, else jsonl")
      ->check(one_of({"jsonl", "csv"}))
      ->type_name("NAME");
  command
      ->add_option("--on-conflict", *conflict, "What to do with a resource that is there already")
      ->check(one_of({"reject", "skip", "replace"}))
      ->type_name("ACTION")
      ->capture_default_str();
  command
      ->add_option("--rejects", settings->rejects,
                   "Where to write what the server did not take; FILE.rejects when left out")
      ->type_name("FILE");
  command->add_option("--parallel", settings->parallel, "Requests at a time, 1 to 100")
      ->check(number_within(1, 100))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--bulk", settings->bulk,
                   "Lines in one request where the server has /Bulk, 0 to 1000; 0: each by itself")
      ->check(number_within(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      R"(Lines of a file go in bulk requests where the server has them, those of standard
input one by one as they come. Each request has an Idempotency-Key, the same
when it is sent again. What is settled is kept in FILE.import until all is;
after Ctrl-C, an error or a crash --resume continues. id and meta are left out:
the server gives them. Rejects of an import before are not written over.

The token: --token, --token-file, or the variable TIDEGATE_TOKEN.

Examples:
  tidegate scim import https://example.com/scim/v2/Users users.jsonl
  tidegate scim import --on-conflict skip --resume URL users.csv

Exit status: 0 all was taken, replaced or skipped; 1 some was not, or it ended
early; 2 the command line is wrong, a file is in the way, or there is nothing to
resume; 130 interrupted.)");
  command->callback([settings, format, conflict, &status] {
    for (auto const& each : fields_of(settings->field_lines)) {
      if (CLI::detail::to_lower(each.name) == "idempotency-key") {
        throw CLI::ValidationError("-H", "each line has an Idempotency-Key of its own");
      }
    }
    settings->format = format->empty() && settings->file.ends_with(".csv") ? scim_format::csv
                                                                           : format_named(*format);
    settings->url = with_scheme(settings->url);
    settings->conflict = conflict_named(*conflict);
    status = run_scim_import(*settings);
  });
}

void add_backup(CLI::App& scim, int& status) {
  auto* const command =
      scim.add_subcommand("backup", "Copy the directory of a gateway, also while it runs");
  auto const settings = std::make_shared<backup_settings>();
  command->add_option("FILE", settings->to, "The copy, which must not be there")->required();
  auto* const config = command
                           ->add_option("-c,--config", settings->config,
                                        "The configuration that says where the directory is")
                           ->type_name("FILE");
  auto* const from =
      command->add_option("--from", settings->from, "The file of the directory itself")
          ->type_name("FILE");
  from->excludes(config);
  command->footer(
      R"(The copy is the directory at one moment, and a file of SQLite that a gateway can
open. While it is made, the log of the directory cannot begin again.

Examples:
  tidegate scim backup -c gateway.yaml directory-backup.db

Exit status: 0 the copy is there; 1 it is not, and standard error says why;
2 the command line or the configuration is wrong; 130 interrupted.)");
  command->callback([settings, config, from, &status] {
    if (config->count() + from->count() == 0) {
      throw CLI::RequiredError("--config or --from");
    }
    status = run_scim_backup(*settings);
  });
}

}  // namespace

auto scim_fields_of(scim_settings const& settings) -> std::vector<http::field> {
  auto fields = fields_of(settings.field_lines);
  if (auto const token = token_of(settings, "TIDEGATE_TOKEN"); !token.empty()) {
    fields.push_back({"Authorization", "Bearer " + token});
  }
  return fields;
}

void add_scim_command(CLI::App& app, int& status) {
  auto* const scim = app.add_subcommand(
      "scim", "Export and import the resources of SCIM servers, and back up a directory");
  scim->require_subcommand(1);
  add_export(*scim, status);
  add_import(*scim, status);
  add_backup(*scim, status);
}

}  // namespace tidegate::app
