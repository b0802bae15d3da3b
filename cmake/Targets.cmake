# The build's own vocabulary: pagoda_library, pagoda_executable, pagoda_test. A folder's CMakeLists.txt lists its sources by hand and uses these.

add_library(pagoda_flags INTERFACE)
target_include_directories(pagoda_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Werror
  -ffp-contract=off -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pagoda_flags INTERFACE -Wthread-safety -Wno-psabi)
else()
  # GCC 12 reports false positives inside libstdc++ and abseil at -O2.
  target_compile_options(pagoda_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-psabi)
endif()

if(PAGODA_SANITIZER STREQUAL "address+undefined")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(PAGODA_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(NOT PAGODA_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "PAGODA_SANITIZER is '${PAGODA_SANITIZER}'; choose none, address+undefined or thread")
endif()
if(PAGODA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# pagoda_library(NAME SOURCES a.cc ... HEADERS a.h ... PUBLIC lib ... PRIVATE lib ...)
function(pagoda_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${arg_HEADERS})
    target_link_libraries(${name} PUBLIC pagoda_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_sources(${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${arg_HEADERS})
    target_link_libraries(${name} INTERFACE pagoda_flags ${arg_PUBLIC})
  endif()
endfunction()

# pagoda_executable(NAME SOURCES a.cc ... LIBS lib ...)
function(pagoda_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE pagoda_flags ${arg_LIBS})
endfunction()

# pagoda_test(NAME SOURCES a_test.cc ... LIBS lib ... [LABELS slow])   one GoogleTest binary, one ctest entry
function(pagoda_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE pagoda_flags ${arg_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE PAGODA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  # What it writes stays in the build's folder, away from other users and builds, until the next configuration.
  set(files ${CMAKE_BINARY_DIR}/test-files/${name})
  file(REMOVE_RECURSE ${files})
  file(MAKE_DIRECTORY ${files})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
    ENVIRONMENT "TEST_TMPDIR=${files};TMPDIR=${files}")
endfunction()

# pagoda_fuzz(NAME SOURCES NAME.cc LIBS lib ...)   The source has libFuzzer's entry, corpus/NAME the small files it begins with. Every
# build has a test that runs it over them and over seeded changes of them; a build for fuzzing has the fuzzer NAME too.
function(pagoda_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  pagoda_executable(${name}_replay SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} replay_corpus)
  add_test(NAME ${name}_replay COMMAND ${name}_replay ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  set_tests_properties(${name}_replay PROPERTIES TIMEOUT 300)
  if(PAGODA_FUZZ)
    pagoda_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
