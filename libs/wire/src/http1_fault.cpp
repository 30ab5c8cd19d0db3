// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_head.hpp>

namespace tidegate::TIDEGATE_ABI::wire {

auto status_of(head_fault fault) noexcept -> int {
  switch (fault) {
    case head_fault::request_line_too_long: return 414;
    case head_fault::head_too_large:
    case head_fault::too_many_fields: return 431;
    case head_fault::unsupported_version: return 505;
    case head_fault::unknown_transfer_coding: return 501;
    case head_fault::unknown_expectation: return 417;
    default: return 400;
  }
}

auto to_string(head_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case head_fault::none: return "none";
    case head_fault::bare_cr: return "bare_cr";
    case head_fault::bare_lf: return "bare_lf";
    case head_fault::too_many_empty_lines: return "too_many_empty_lines";
    case head_fault::request_line_too_long: return "request_line_too_long";
    case head_fault::head_too_large: return "head_too_large";
    case head_fault::too_many_fields: return "too_many_fields";
    case head_fault::invalid_method: return "invalid_method";
    case head_fault::invalid_target: return "invalid_target";
    case head_fault::invalid_target_form: return "invalid_target_form";
    case head_fault::malformed_version: return "malformed_version";
    case head_fault::unsupported_version: return "unsupported_version";
    case head_fault::malformed_status_line: return "malformed_status_line";
    case head_fault::invalid_status: return "invalid_status";
    case head_fault::obs_fold: return "obs_fold";
    case head_fault::empty_name: return "empty_name";
    case head_fault::space_before_colon: return "space_before_colon";
    case head_fault::invalid_name: return "invalid_name";
    case head_fault::missing_colon: return "missing_colon";
    case head_fault::invalid_value: return "invalid_value";
    case head_fault::missing_host: return "missing_host";
    case head_fault::repeated_host: return "repeated_host";
    case head_fault::invalid_host: return "invalid_host";
    case head_fault::target_host_mismatch: return "target_host_mismatch";
    case head_fault::repeated_content_length: return "repeated_content_length";
    case head_fault::invalid_content_length: return "invalid_content_length";
    case head_fault::content_length_overflow: return "content_length_overflow";
    case head_fault::content_length_and_transfer_encoding:
      return "content_length_and_transfer_encoding";
    case head_fault::transfer_encoding_in_http_1_0: return "transfer_encoding_in_http_1_0";
    case head_fault::unknown_transfer_coding: return "unknown_transfer_coding";
    case head_fault::misplaced_chunked: return "misplaced_chunked";
    case head_fault::invalid_transfer_encoding: return "invalid_transfer_encoding";
    case head_fault::invalid_connection: return "invalid_connection";
    case head_fault::unknown_expectation: return "unknown_expectation";
    case head_fault::body_in_interim_response: return "body_in_interim_response";
  }
  return "";
}

}  // namespace tidegate::TIDEGATE_ABI::wire
