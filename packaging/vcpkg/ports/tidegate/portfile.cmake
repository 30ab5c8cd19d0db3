# SPDX-License-Identifier: Apache-2.0
# A port for `vcpkg install tidegate --overlay-ports=packaging/vcpkg/ports`. It builds the tree that it lies in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)

# The modules that these need are added by the build.
set(modules ratelimit idempotency explain)
if("scim" IN_LIST FEATURES)
  list(APPEND modules scim)
endif()
if("client" IN_LIST FEATURES)
  list(APPEND modules client)
endif()

vcpkg_cmake_configure(
  SOURCE_PATH
  "${SOURCE_PATH}"
  OPTIONS
  "-DTIDEGATE_MODULES=${modules}"
  -DTIDEGATE_APPS=OFF
  -DTIDEGATE_TESTS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tidegate CONFIG_PATH lib/cmake/tidegate)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")

vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
