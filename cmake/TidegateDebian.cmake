# SPDX-License-Identifier: Apache-2.0
# What ./dev package needs besides the install rules: the packages tidegate and libtidegate-dev by CPack, and
# a program for the tarball. Everything here must come out the same in any folder: tools/make_package
# sets SOURCE_DATE_EPOCH, and tools/check_reproducible looks.
set(TIDEGATE_PACKAGE_MAINTAINER "The Tidegate authors <tidegate@example.com>")
set(TIDEGATE_PACKAGE_VERSION "${PROJECT_VERSION}")
set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(made "${PROJECT_BINARY_DIR}/package")

# The program of the tarball is the same objects, linked with archives for whatever other machines may not
# have in the same version. libcurl and libpq stay shared: their archives need Kerberos and LDAP, which Debian
# has no archives of. OpenSSL and nghttp2 stay shared since those two bring them along.
get_property(modules GLOBAL PROPERTY TIDEGATE_MODULES)
set(archives "")
set(libraries "")
foreach(module IN LISTS modules)
  get_target_property(type tidegate_${module} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(PREPEND archives tidegate_${module})
  endif()
  get_property(flags GLOBAL PROPERTY TIDEGATE_${module}_FLAGS)
  list(APPEND libraries ${flags})
endforeach()
list(REMOVE_DUPLICATES libraries)
list(TRANSFORM libraries REPLACE "^-l(yaml-cpp|sqlite3)$" "-l:lib\\1.a")
list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archive_files)
add_executable(tidegate_portable $<TARGET_OBJECTS:tidegate>)
set_target_properties(tidegate_portable PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY
                                                                       "${PROJECT_BINARY_DIR}")
target_link_libraries(tidegate_portable PRIVATE ${archive_files} ${libraries})
target_link_options(tidegate_portable PRIVATE -static-libstdc++ -static-libgcc -s)
add_dependencies(tidegate_portable ${archives})

# The Debian packages.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file("${packaging}/debian/changelog.in" "${made}/changelog" @ONLY)
find_program(TIDEGATE_GZIP gzip REQUIRED)
mark_as_advanced(TIDEGATE_GZIP)
foreach(text IN ITEMS "${made}/changelog" "${PROJECT_SOURCE_DIR}/CHANGELOG.md")
  get_filename_component(name "${text}" NAME)
  execute_process(COMMAND "${TIDEGATE_GZIP}" -9nc "${text}" OUTPUT_FILE "${made}/${name}.gz" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
install(
  FILES "${packaging}/systemd/tidegate.service" "${packaging}/systemd/tidegate.socket"
  DESTINATION /lib/systemd/system
  COMPONENT tidegate)
install(FILES "${packaging}/tidegate.yaml" DESTINATION /etc/tidegate COMPONENT tidegate)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${made}/CHANGELOG.md.gz" DESTINATION share/doc/tidegate
        COMPONENT tidegate)
foreach(package IN ITEMS tidegate dev)
  set(name tidegate)
  if(package STREQUAL "dev")
    set(name libtidegate-dev)
  endif()
  install(FILES "${packaging}/debian/copyright" "${made}/changelog.gz" DESTINATION "share/doc/${name}"
          COMPONENT ${package})
  string(TOUPPER "${package}" upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${name}")
  set(CPACK_DEBIAN_${upper}_FILE_NAME DEB-DEFAULT)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL tidegate dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_NAME tidegate)
set(CPACK_PACKAGE_VENDOR Tidegate)
# The first line of each description is its own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_CONTACT "${TIDEGATE_PACKAGE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_VERSION "${TIDEGATE_PACKAGE_VERSION}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_TIDEGATE_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_TIDEGATE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TIDEGATE_PACKAGE_DEPENDS "adduser, tzdata")
set(CPACK_DEBIAN_TIDEGATE_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_TIDEGATE_PACKAGE_SUGGESTS "redis-server, postgresql")
set(CPACK_DEBIAN_TIDEGATE_PACKAGE_CONTROL_EXTRA
    "${packaging}/debian/conffiles;${packaging}/debian/postinst;${packaging}/debian/prerm;${packaging}/debian/postrm")
set(CPACK_COMPONENT_TIDEGATE_DESCRIPTION
    "API gateway with standard rate limits, idempotent retries and SCIM
Tidegate stands in front of an HTTP API and makes it well behaved: quotas
that clients are told of by RateLimit fields, requests with an Idempotency-Key
that are safe to send again, and a directory of users and groups by SCIM 2.0.
The same program is a polite client and explains what fields of others mean.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# Archives do not bring along what they are linked with.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libssl-dev, libnghttp2-dev, libyaml-cpp-dev, libsqlite3-dev, libpq-dev, libcurl4-openssl-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "C++ libraries for Structured Fields, RateLimit, Idempotency-Key and SCIM
The libraries that the Tidegate gateway is made of: headers, archives, a
package for CMake and files for pkg-config. Those of the protocols do no I/O,
read no clock and start no thread.")
include(CPack)
