// SPDX-License-Identifier: Apache-2.0
#include "scim/settings.hpp"

#include "client/progress.hpp"
#include "commands.hpp"
#include "serve/config_file.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/store_sqlite/directory_backup.hpp>

#include <csignal>
#include <iostream>

namespace tidegate::app {

namespace {

/// The file of the directory that a configuration names. An error is a text.
[[nodiscard]] auto directory_of(std::string const& config) -> result<std::string, std::string> {
  auto const text = read_config_file(config, config_reading::first);
  if (!text) {
    return failure("cannot read " + config + ": " + text.error());
  }
  auto const settings =
      gateway::parse_config(*text, config, sources_of_process(config_reading::first));
  if (!settings) {
    return failure(config + " is not valid: see 'tidegate check -c " + config + "'");
  }
  auto const& place = settings->stores.directory;
  if (place.kind != gateway::store_kind::sqlite) {
    return failure(config + ": stores.directory is not a file: use the backup of the database");
  }
  return place.where;
}

std::sig_atomic_t volatile is_interrupted = 0;

}  // namespace

auto run_scim_backup(backup_settings const& settings) -> int {
  auto const from = settings.from.empty() ? directory_of(settings.config)
                                          : result<std::string, std::string>(settings.from);
  if (!from) {
    std::cerr << "error: " << from.error() << '\n';
    return exit_usage;
  }
  std::signal(SIGINT, [](int) { is_interrupted = 1; });
  std::signal(SIGTERM, [](int) { is_interrupted = 1; });
  progress shown;
  auto const copied = store_sqlite::back_up_directory(*from, settings.to,
                                                      [&](std::uint64_t done, std::uint64_t all) {
                                                        shown.show(done, all);
                                                        return is_interrupted == 0;
                                                      });
  shown.clear();
  if (!copied) {
    std::cerr << "error: " << copied.error().text << '\n';
    return is_interrupted != 0 ? exit_interrupted : exit_failure;
  }
  std::cerr << *copied << " bytes of " << *from << " are in " << settings.to << '\n';
  return exit_success;
}

}  // namespace tidegate::app
