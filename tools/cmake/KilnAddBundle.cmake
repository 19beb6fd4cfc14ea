# kiln_add_bundle(NAME CONFIG file.yaml [LOCK file.lock.yaml] [TARGETS sm_80 ...] [IMAGES ptx|cubin ...] [PTX name ...]
#                 [SHARDS n] [GENERATOR program] [PACK] [PYTHON]
#                 [VERIFY [REFERENCES file.c ...] [UNCOMPARED kernel ...]])
# kiln_add_bundle(NAME COMMITTED folder [CONFIG file.yaml ...] ...)
#
# Makes a static library NAME of the kernels that file.yaml names. A target that links it gets NAME.h and the kiln runtime.
# The build makes NAME.c, NAME.h, NAME.json (the manifest) and NAME.d in the current binary folder, and writes them only
# if their bytes change: touching the configuration, or rebuilding kiln, recompiles nothing by itself.
#
#   LOCK       the lock file that `kiln choose` wrote, with the variants of items with shapes; default: file.lock.yaml
#              next to the configuration, if that file exists
#   TARGETS    replaces the configuration's targets; 80 is short for sm_80
#   IMAGES     replaces the configuration's images
#   PTX        names that kiln_add_ptx compiled, each for an item `ptx: name` of the configuration
#   SHARDS     distributes the families over n more files, NAME_1.c and so on, which compile in parallel: a change of one
#              family recompiles its shard and NAME.c, which then is only the index
#   GENERATOR  the program that writes the bundle, a path or a target: a kiln with your own families
#   COMMITTED  compiles the files that `kiln generate` wrote into this folder, and needs no generator. With CONFIG and a
#              generator, the target and the test NAME_check compare the files with what the generator would write
#   VERIFY     also makes the program NAME_verify, by kiln_add_verify(NAME_verify NAME), with REFERENCES and UNCOMPARED
#   PACK       also makes the shared object NAME_pack.so, the target NAME_pack, for programs that open it at run time: it
#              exports only NAME_index, and contains the parts of the runtime that its functions call
#   PYTHON     also makes the shared object NAME_python.so, the target NAME_python, which exports NAME's functions and the
#              runtime's. Puts kiln.py and NAME.json, with which Python calls them, next to it
#
# NAME is the bundle's name. The configuration's "bundle:" names its files and functions, and only the generator reads
# YAML; but the build must know the files' names before the generator runs. So whenever the configuration changes, this
# file compares the two. It reads "bundle:", "images:" and "compress:" at the start of a line.
#
# With LOCK or IMAGES the target may have a different name than the bundle, so that a configuration can be built twice: with the
# variants that ship, and with candidates to measure. Its files are then in the folder NAME of the current binary folder.
# Both define the same functions, so a program links one of them.
#
# A bundle with only cubins has a twin, NAME_ptx, with the PTX that they are compiled from, which kiln_add_verify runs.
#
# With "compress: zstd" in the configuration, NAME also links kiln::zstd, the decoder of compressed images.
#
# Cubins are made by the first ptxas on the PATH when cmake configures; a different ptxas remakes them. If cmake finds none,
# the PATH of the build applies.
#
# The generator is the kiln that this build makes, or that find_package found. A cross build cannot run a generator for
# the target machine: set KILN_HOST_EXECUTABLE to a kiln for the build machine, or import one as kiln::kiln.
#
# The library can be installed and exported: install(TARGETS NAME EXPORT ... PUBLIC_HEADER DESTINATION include INCLUDES
# DESTINATION include) installs NAME.h, and the package's own configuration calls find_dependency(kiln).
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/KilnOwnTargets.cmake)

set(KILN_HOST_EXECUTABLE "" CACHE FILEPATH "The kiln that generates bundles; empty for the one that this build makes")

# Bundles are C, which a C++ project may not have enabled. This macro enables it in the caller's folder, which a function
# cannot do. An argument is a list: an empty one is left out.
macro(kiln_add_bundle)
    _kiln_add_bundle(${ARGV})
    if(_kiln_lacks_c)
        if(CMAKE_CURRENT_FUNCTION)
            message(FATAL_ERROR "kiln_add_bundle(${ARGV0}): a bundle is C, which ${CMAKE_CURRENT_FUNCTION}() cannot enable for its caller: \
write project(NAME LANGUAGES C CXX), or enable_language(C) outside of functions")
        endif()
        enable_language(C)
        _kiln_add_bundle(${ARGV})
    endif()
endmacro()

function(_kiln_add_bundle)
    set(usage "it is called as kiln_add_bundle(NAME CONFIG file.yaml [LOCK file.lock.yaml] [TARGETS sm_80 ...] \
[IMAGES ptx|cubin ...] [PTX name ...] [SHARDS n] [GENERATOR program] [PACK] [PYTHON] [VERIFY [REFERENCES file.c ...] \
[UNCOMPARED kernel ...]]), or with COMMITTED folder, and then with or without CONFIG")
    if(ARGC EQUAL 0)
        message(FATAL_ERROR "kiln_add_bundle: the bundle's name is missing; ${usage}")
    endif()
    set(name ${ARGV0})
    cmake_parse_arguments(PARSE_ARGV 1 arg "VERIFY;PACK;PYTHON" "CONFIG;LOCK;SHARDS;GENERATOR;COMMITTED"
        "TARGETS;IMAGES;PTX;REFERENCES;UNCOMPARED")
    _kiln_check_arguments()
    set(bundle ${name})
    set(config)
    set(lock)
    if(arg_CONFIG)
        cmake_path(ABSOLUTE_PATH arg_CONFIG BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE config)
        _kiln_read_config()
        _kiln_find_bundle_name(bundle)
        _kiln_find_lock(lock)
    endif()
    _kiln_find_generator(generator)
    set(program ${generator}) # in a command
    if(TARGET "${generator}")
        set(program $<TARGET_FILE:${generator}>)
        get_target_property(is_imported ${generator} IMPORTED)
        if(CMAKE_CROSSCOMPILING AND NOT is_imported)
            list(PREPEND program ${CMAKE_CROSSCOMPILING_EMULATOR})
        endif()
    endif()
    if(arg_COMMITTED)
        _kiln_find_committed()
    else()
        _kiln_find_formats()
    endif()
    _kiln_set_options()
    _kiln_find_ptxas()
    _kiln_find_codec(codec)
    set(_kiln_lacks_c OFF PARENT_SCOPE)
    if(NOT CMAKE_C_COMPILER_LOADED)
        set(_kiln_lacks_c ON PARENT_SCOPE)
        return()
    endif()
    set(folder ${CMAKE_CURRENT_BINARY_DIR})
    if(NOT bundle STREQUAL name)
        string(APPEND folder /${name})
    endif()
    if(arg_COMMITTED)
        _kiln_check_committed()
    else()
        set(files ${folder})
        _kiln_generate()
    endif()

    _kiln_ignore_parent()
    add_library(${name} STATIC ${sources})
    if(NOT arg_COMMITTED)
        set_source_files_properties(${outputs} PROPERTIES GENERATED ON)
        add_dependencies(${name} ${name}_kernels)
    endif()
    target_compile_features(${name} PRIVATE c_std_11)
    target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections # for --gc-sections: see NAME.h
        $<$<NOT:$<BOOL:${CMAKE_C_STANDARD}>>:-std=gnu11> # takes effect after -std=c99 of add_compile_options
        -Wno-error -fno-fast-math) # a parent's -Werror is for its own files; fast mathematics may break dispatch's comparisons
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${files}>)
    target_link_libraries(${name} PUBLIC kiln::runtime ${codec})
    set_target_properties(${name} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        PUBLIC_HEADER ${files}/${bundle}.h
        KILN_BUNDLE ${bundle}
        KILN_MANIFEST ${files}/${bundle}.json)
    if(NOT formats MATCHES "ptx")
        set_target_properties(${name} PROPERTIES KILN_PTX_BUNDLE ${name}_ptx)
        if(config AND generator)
            _kiln_add_twin()
        endif()
    endif()
    if(arg_VERIFY)
        set(lists)
        foreach(list REFERENCES UNCOMPARED)
            if(arg_${list})
                list(APPEND lists ${list} ${arg_${list}})
            endif()
        endforeach()
        kiln_add_verify(${name}_verify ${name} ${lists})
    endif()
    if(arg_PACK)
        _kiln_add_shared(pack "${bundle}_index" kiln::runtime)
    endif()
    if(arg_PYTHON)
        _kiln_add_shared(python "${bundle}_*; kiln_*" -Wl,--whole-archive kiln::runtime -Wl,--no-whole-archive)
        _kiln_find_python_module(module)
        set(beside ${files}/${bundle}.json ${module})
        set_property(TARGET ${name}_python APPEND PROPERTY LINK_DEPENDS ${beside})
        add_custom_command(TARGET ${name}_python POST_BUILD
            COMMAND ${CMAKE_COMMAND} -E copy_if_different ${beside} $<TARGET_FILE_DIR:${name}_python> VERBATIM)
    endif()
endfunction()

# Makes the target NAME_KIND, a shared object of the bundle that exports these symbols and contains the linked libraries.
macro(_kiln_add_shared kind symbols)
    file(CONFIGURE OUTPUT ${folder}/${bundle}_${kind}.map CONTENT "{ global: ${symbols}; local: *; };\n" @ONLY)
    if("${kind}" STREQUAL "python" OR NOT bundle STREQUAL name)
        _kiln_put_outputs(${folder} LIBRARY)
    endif()
    add_library(${name}_${kind} MODULE $<TARGET_OBJECTS:${name}>)
    target_link_libraries(${name}_${kind} PRIVATE ${ARGN} ${codec})
    target_link_options(${name}_${kind} PRIVATE "SHELL:-Xlinker \"--version-script=${folder}/${bundle}_${kind}.map\"") # -Wl would split at commas
    set_target_properties(${name}_${kind} PROPERTIES
        LINKER_LANGUAGE C
        PREFIX ""
        SUFFIX .so
        OUTPUT_NAME ${bundle}_${kind}
        LINK_DEPENDS ${folder}/${bundle}_${kind}.map)
endmacro()

# Makes the bundle of PTX, in its own folder, that the program of kiln_add_verify runs instead of the cubins.
macro(_kiln_add_twin)
    set(same CONFIG ${config})
    foreach(option LOCK TARGETS PTX SHARDS GENERATOR)
        if(arg_${option})
            list(APPEND same ${option} ${arg_${option}})
        endif()
    endforeach()
    _kiln_add_bundle(${name}_ptx ${same} IMAGES ptx)
    set_target_properties(${name}_ptx PROPERTIES EXCLUDE_FROM_ALL ON)
endmacro()

# Sets the manifest of a committed bundle, ${sources}, ${formats}, and ${SHARDS} for a check. Another bundle may have a
# shard's name; it then has a header.
macro(_kiln_find_committed)
    cmake_path(ABSOLUTE_PATH arg_COMMITTED BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE files)
    set(manifest ${files}/${bundle}.json)
    foreach(file ${manifest} ${files}/${bundle}.c ${files}/${bundle}.h)
        if(NOT EXISTS ${file})
            _kiln_bundle_error("there is no ${file}, which COMMITTED needs; `kiln generate` writes it")
        endif()
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
    file(STRINGS ${manifest} line REGEX "^  \"layout_version\": [0-9]+,$" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" has "${line}")
    set(takes)
    if(TARGET kiln::runtime)
        get_target_property(takes kiln::runtime KILN_LAYOUT)
    endif()
    if(NOT has EQUAL takes)
        file(STRINGS ${manifest} line REGEX "^  \"config\": {\"file\": \"[^\"]+\"" LIMIT_COUNT 1)
        string(REGEX REPLACE "^[^{]*{\"file\": \"([^\"]+)\".*" "\\1" made_of "${line}")
        _kiln_quote(made_of ${made_of})
        _kiln_quote(files ${files})
        _kiln_bundle_error("${manifest} is of layout '${has}', and this kiln's headers are of layout '${takes}': remake it by \
`kiln generate ${made_of} --output ${files}`")
    endif()
    set(formats ptx)
    file(STRINGS ${manifest} line REGEX "\"ptx_version\":" LIMIT_COUNT 1)
    if(NOT line)
        set(formats cubin)
    endif()
    set(sources ${files}/${bundle}.c)
    file(GLOB shards CONFIGURE_DEPENDS ${files}/${bundle}_[1-9].c ${files}/${bundle}_[1-9][0-9].c)
    set(arg_SHARDS)
    foreach(shard IN LISTS shards)
        string(REGEX REPLACE "[.]c$" ".h" header "${shard}")
        if(NOT EXISTS ${header})
            list(APPEND sources ${shard})
            math(EXPR arg_SHARDS "0${arg_SHARDS} + 1")
        endif()
    endforeach()
endmacro()

# Makes the target and the test NAME_check of a committed bundle, which fails with exit status 4 if a file is stale.
macro(_kiln_check_committed)
    if(generator AND config)
        set(check ${with_ptxas} ${program} generate ${config} --check --output ${files} ${options})
        add_custom_target(${name}_check COMMAND ${check} VERBATIM)
        if(arg_PTX)
            add_dependencies(${name}_check ${arg_PTX})
        endif()
        add_test(NAME ${name}_check COMMAND ${check})
    endif()
endmacro()

# Sets ${formats}, the formats of the images: "ptx", "cubin" or both.
macro(_kiln_find_formats)
    set(formats "${arg_IMAGES}")
    if(NOT formats)
        _kiln_read_key(formats images)
        if(NOT formats MATCHES "cubin")
            set(formats ptx)
        endif()
    endif()
endmacro()

# For cubins sets ${ptxas}, and ${with_ptxas}, which puts it first on the PATH of the command that follows, since make and ninja
# do not track the PATH of the build.
macro(_kiln_find_ptxas)
    unset(ptxas)
    set(with_ptxas)
    if(formats MATCHES "cubin")
        find_program(ptxas ptxas PATHS ENV PATH NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
        if(ptxas)
            cmake_path(GET ptxas PARENT_PATH toolkit)
            file(REAL_PATH ${toolkit} toolkit) # /usr/local/cuda is a link
            set(ptxas ${toolkit}/ptxas)
            set(with_ptxas sh -c [[PATH="$0:$PATH" exec "$@"]] ${toolkit})
        else()
            set(ptxas)
        endif()
    endif()
endmacro()

# Sets the generator's ${options}, and ${ptx_files}.
macro(_kiln_set_options)
    set(options)
    if(lock)
        list(APPEND options --lock ${lock})
    endif()
    if(arg_TARGETS)
        list(JOIN arg_TARGETS "," targets)
        list(APPEND options --targets ${targets})
    endif()
    if(arg_IMAGES)
        list(JOIN arg_IMAGES "," images)
        list(APPEND options --images ${images})
    endif()
    set(ptx_files)
    foreach(ptx IN LISTS arg_PTX)
        get_target_property(groups ${ptx} KILN_PTX_GROUPS)
        get_target_property(files ${ptx} KILN_PTX_FILES)
        foreach(group IN LISTS groups)
            list(APPEND options --ptx ${ptx}=${group})
        endforeach()
        list(APPEND ptx_files ${files})
    endforeach()
    if(arg_SHARDS)
        list(APPEND options --shards ${arg_SHARDS})
    endif()
endmacro()

# Adds the command that makes ${sources} and ${outputs}.
macro(_kiln_generate)
    set(sources ${folder}/${bundle}.c)
    if(arg_SHARDS)
        foreach(shard RANGE 1 ${arg_SHARDS})
            list(APPEND sources ${folder}/${bundle}_${shard}.c)
        endforeach()
    endif()
    set(outputs ${sources} ${folder}/${bundle}.h ${folder}/${bundle}.json)
    get_property(taken GLOBAL PROPERTY KILN_OUTPUTS)
    foreach(output IN LISTS outputs)
        if(output IN_LIST taken)
            _kiln_bundle_error("another bundle also makes ${output}: rename one, or call kiln_add_bundle in another folder")
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY KILN_OUTPUTS ${outputs})
    if(CMAKE_GENERATOR MATCHES "Ninja") # an unchanged output counts as up to date
        set(witness ${outputs})
        set(made OUTPUT ${outputs})
        set(inputs ${config})
    else() # make needs a stamp newer than the inputs, or it always runs the command; and it does not see changed options
        set(witness ${folder}/${bundle}.stamp)
        set(made OUTPUT ${witness} BYPRODUCTS ${outputs})
        set(inputs ${config} ${folder}/${bundle}.options)
        list(APPEND options --stamp ${witness})
        file(CONFIGURE OUTPUT ${folder}/${bundle}.options CONTENT "${generator} ${options} ${ptxas}\n" @ONLY)
        add_custom_target(${name}_missing # make does not notice deleted BYPRODUCTS
            COMMAND sh -c [[for file do test -e "$file" || rm -f "$0"; done]] ${witness} ${outputs} VERBATIM)
    endif()
    add_custom_command(
        ${made} DEPFILE ${folder}/${bundle}.d
        COMMAND ${with_ptxas} ${program} generate ${config} --quiet --output ${folder} ${options}
        DEPENDS ${inputs} ${lock} ${ptx_files} ${ptxas} ${generator}
        COMMENT "Generating the kernels of ${name}"
        VERBATIM)
    add_custom_target(${name}_kernels DEPENDS ${witness})
    if(TARGET ${name}_missing)
        add_dependencies(${name}_kernels ${name}_missing)
    endif()
    if(arg_PTX)
        add_dependencies(${name}_kernels ${arg_PTX})
    endif()
endmacro()

# Quotes a path for a shell, in a command that a message suggests.
function(_kiln_quote result path)
    if(path MATCHES "[^A-Za-z0-9_./+,:=@%-]")
        string(REPLACE "'" "'\\''" path "${path}")
        set(path "'${path}'")
    endif()
    set(${result} "${path}" PARENT_SCOPE)
endfunction()

function(_kiln_bundle_error text) # quoted, since a list would lose its semicolons
    message(FATAL_ERROR "kiln_add_bundle(${name}): ${text}")
endfunction()

macro(_kiln_check_arguments)
    if(arg_UNPARSED_ARGUMENTS)
        _kiln_bundle_error("unknown argument '${arg_UNPARSED_ARGUMENTS}'; ${usage}")
    endif()
    if(arg_KEYWORDS_MISSING_VALUES)
        _kiln_bundle_error("nothing stands after ${arg_KEYWORDS_MISSING_VALUES}")
    endif()
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
        _kiln_bundle_error("the name of a bundle is a C identifier")
    endif()
    if(NOT arg_CONFIG AND NOT arg_COMMITTED)
        _kiln_bundle_error("CONFIG file.yaml is missing")
    endif()
    if(arg_COMMITTED AND DEFINED arg_SHARDS)
        _kiln_bundle_error("SHARDS is for bundles that are generated; the files of COMMITTED say how many there are")
    endif()
    foreach(format IN LISTS arg_IMAGES)
        if(NOT format MATCHES "^(ptx|cubin)$")
            _kiln_bundle_error("IMAGES lists '${format}'; there are ptx and cubin")
        endif()
    endforeach()
    foreach(target IN LISTS arg_TARGETS)
        if(NOT target MATCHES "^(sm_|compute_)?[1-9][0-9]+[af]?$")
            _kiln_bundle_error("TARGETS lists '${target}'; a target is written as in sm_80 or 80, sm_90a or 90a")
        endif()
    endforeach()
    list(TRANSFORM arg_TARGETS REPLACE "^(sm_|compute_)?([0-9]+[af]?)$" "sm_\\2")
    if(DEFINED arg_SHARDS AND NOT arg_SHARDS MATCHES "^[1-9][0-9]?$")
        _kiln_bundle_error("SHARDS is a number from 1 to 99, found '${arg_SHARDS}'")
    endif()
    foreach(ptx IN LISTS arg_PTX)
        set(groups)
        if(TARGET ${ptx})
            get_target_property(groups ${ptx} KILN_PTX_GROUPS)
        endif()
        if(NOT groups)
            _kiln_bundle_error("there is no ${ptx}, which PTX names; kiln_add_ptx makes it")
        endif()
    endforeach()
    if(TARGET ${name})
        _kiln_bundle_error("there is a target of that name already")
    endif()
    if(NOT arg_VERIFY AND (arg_REFERENCES OR arg_UNCOMPARED))
        _kiln_bundle_error("REFERENCES and UNCOMPARED are for the program of VERIFY, which is not asked for")
    endif()
    if(arg_VERIFY AND NOT COMMAND kiln_add_verify)
        get_property(lacking GLOBAL PROPERTY KILN_TOOLS_LACK)
        if(lacking)
            _kiln_bundle_error("VERIFY needs ${lacking}, which kiln's tools are linked with: install ${lacking}")
        endif()
        _kiln_bundle_error("VERIFY needs kiln's tools, which this kiln is without: configure kiln with -DKILN_TOOLS=ON")
    endif()
endmacro()

# Finds the generator, a target or a program that runs on this machine. A committed bundle does not need one.
function(_kiln_find_generator result)
    if(arg_COMMITTED AND NOT DEFINED arg_GENERATOR AND NOT KILN_HOST_EXECUTABLE)
        set(is_runnable FALSE)
        if(TARGET kiln::kiln)
            get_target_property(is_imported kiln::kiln IMPORTED)
            if(is_imported OR NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
                set(is_runnable TRUE)
            endif()
        endif()
        if(NOT is_runnable)
            set(${result} "" PARENT_SCOPE)
            return()
        endif()
    endif()
    set(generator kiln::kiln)
    set(wanted "a kiln that runs on this machine: build one there, and set KILN_HOST_EXECUTABLE to its path")
    if(DEFINED arg_GENERATOR)
        set(generator ${arg_GENERATOR})
        set(wanted "a program that runs on this machine")
    elseif(KILN_HOST_EXECUTABLE)
        set(generator ${KILN_HOST_EXECUTABLE})
        _kiln_try_host_executable()
    endif()
    if(TARGET ${generator})
        get_target_property(is_imported ${generator} IMPORTED)
        if(CMAKE_CROSSCOMPILING AND NOT is_imported AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
            _kiln_bundle_error("in a cross build the generator has to be ${wanted}")
        endif()
    elseif(generator STREQUAL "kiln::kiln")
        _kiln_bundle_error("there is no generator; a cross build, or one with KILN_GENERATOR=OFF, needs ${wanted}")
    else()
        cmake_path(ABSOLUTE_PATH generator BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        if(NOT EXISTS ${generator} OR IS_DIRECTORY ${generator})
            _kiln_bundle_error("the generator is neither a target nor a program: ${generator}")
        endif()
    endif()
    set(${result} ${generator} PARENT_SCOPE)
endfunction()

# Runs ${KILN_HOST_EXECUTABLE} once for each value. It must print "kiln 0.3.0" with this minor version: bundles from others do not
# match these headers.
macro(_kiln_try_host_executable)
    if(NOT TARGET "${generator}" AND EXISTS "${generator}" AND NOT IS_DIRECTORY "${generator}")
        get_property(tried GLOBAL PROPERTY KILN_HOST_TRIED)
        if(NOT tried STREQUAL generator)
            execute_process(COMMAND ${generator} --version RESULT_VARIABLE status OUTPUT_VARIABLE says ERROR_VARIABLE says)
            if(NOT says MATCHES "^kiln ([0-9]+[.][0-9]+)[.][0-9]+")
                string(STRIP "${says}" says)
                _kiln_bundle_error("KILN_HOST_EXECUTABLE is no kiln that runs on this machine: `${generator} --version` gives \
'${status}' and says '${says}'")
            endif()
            set_property(GLOBAL PROPERTY KILN_HOST_TRIED ${generator})
        endif()
    endif()
endmacro()

# Sets ${config_text}, the configuration without comments, in which _kiln_read_key finds keys at the start of lines. Keys elsewhere, or
# with escapes, are an error, since their values would be missed.
macro(_kiln_read_config)
    if(NOT EXISTS ${config})
        _kiln_bundle_error("there is no ${config}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${config})
    file(READ ${config} config_text)
    string(ASCII 239 187 191 byte_order_mark)
    string(REGEX REPLACE "^${byte_order_mark}" "" config_text "${config_text}")
    string(REGEX REPLACE "\r\n?" "\n" config_text "\n${config_text}")
    string(REGEX REPLACE "#[^\n]*" "" config_text "${config_text}")
    string(REGEX REPLACE "\n(%[^\n]*|---)" "\n" config_text "${config_text}")
    string(REGEX MATCH "^[ \t\n]*\n([ \t]+[^ \t\n]|[^A-Za-z\"' \t\n])|\n(\\?|\"[^\"\n]*\\\\)" unread "${config_text}")
    if(unread)
        string(FIND "${config_text}" "${unread}" before)
        string(SUBSTRING "${config_text}" 0 ${before} before)
        string(REGEX REPLACE "[^\n]" "" line "${before}${unread}")
        string(LENGTH "${line}" line)
        _kiln_bundle_error("${config}:${line}: expected a key at the start of the line, as in 'bundle: ${name}'; CMake reads keys only \
there, without indentation, braces, '?' or escapes")
    endif()
endmacro()

# Sets the text of a top-level key; empty if the key is missing. YAML allows a quoted key, a space before its colon, and a value that
# begins on a later line.
function(_kiln_read_key result key)
    string(REGEX MATCH "\n[\"']?${key}[\"']?[ \t]*:([ \t\n]*\\[[^]]*\\]|[^\n]*(\n+[^A-Za-z\"'\n][^\n]*)*)" value "${config_text}")
    set(${result} "${value}" PARENT_SCOPE)
endfunction()

function(_kiln_find_bundle_name result)
    _kiln_read_key(line bundle)
    if(NOT line MATCHES ":[ \t\n]+[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?[ \t]*(\n|$)")
        _kiln_bundle_error("${config} has no line 'bundle: ${name}'")
    endif()
    if(NOT CMAKE_MATCH_1 STREQUAL name AND (arg_COMMITTED OR NOT arg_LOCK AND NOT arg_IMAGES))
        _kiln_bundle_error("${config} says 'bundle: ${CMAKE_MATCH_1}'; the two names must be the same, except with LOCK or IMAGES")
    endif()
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# Sets the lock file for the generator. Each build looks for the one next to the configuration, so that kernels are
# regenerated when it appears or disappears.
function(_kiln_find_lock result)
    set(lock ${arg_LOCK})
    if(lock)
        cmake_path(ABSOLUTE_PATH lock BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        get_source_file_property(is_made ${lock} GENERATED)
        if(NOT EXISTS ${lock} AND NOT is_made)
            _kiln_quote(config ${config})
            _kiln_quote(lock ${lock})
            _kiln_bundle_error("there is no ${lock}; `kiln choose ${config} -o ${lock}` writes it. To build kiln itself first, leave this call out")
        endif()
    elseif(config_text MATCHES "shapes")
        string(REGEX REPLACE "[.]yaml$" "" stem "${config}")
        string(REGEX REPLACE "([[*?])" "[\\1]" stem "${stem}")
        file(GLOB lock CONFIGURE_DEPENDS "${stem}.lock.yaml")
    endif()
    set(${result} ${lock} PARENT_SCOPE)
endfunction()

# Finds kiln.py: in the source tree, or next to this file if kiln is installed.
function(_kiln_find_python_module result)
    set(module ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../python/kiln.py)
    if(NOT EXISTS ${module})
        set(module ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kiln.py)
    endif()
    set(${result} ${module} PARENT_SCOPE)
endfunction()

# Sets the library that decompresses the bundle's images; empty if they are not compressed.
function(_kiln_find_codec result)
    set(line)
    if(arg_COMMITTED)
        file(STRINGS ${manifest} line REGEX "^  \"compress\": " LIMIT_COUNT 1)
    else()
        _kiln_read_key(line compress)
    endif()
    set(codec)
    if(line)
        set(codec kiln::zstd)
    endif()
    if(codec AND NOT TARGET ${codec})
        _kiln_find_scratch_bytes(bytes)
        if(bytes)
            set(bytes ". The bundle will need ${bytes} bytes of scratch memory")
        endif()
        _kiln_bundle_error("its images are compressed (compress: zstd), but there is no kiln::zstd, which expands them: \
install libzstd-dev, with which kiln builds it${bytes}")
    endif()
    set(${result} ${codec} PARENT_SCOPE)
endfunction()

# Sets the scratch bytes in the manifest: a committed one, or one that the generator has written; otherwise empty.
function(_kiln_find_scratch_bytes result)
    if(NOT arg_COMMITTED)
        set(program ${generator})
        if(TARGET ${generator})
            get_target_property(is_imported ${generator} IMPORTED)
            set(program)
            if(is_imported)
                get_target_property(program ${generator} LOCATION)
            endif()
        endif()
        set(manifest)
        if(program)
            set(scratch ${CMAKE_CURRENT_BINARY_DIR}/${name}_scratch)
            execute_process(COMMAND ${program} generate ${config} --quiet --output ${scratch} ${options}
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
            if(status EQUAL 0)
                set(manifest ${scratch}/${bundle}.json)
            endif()
        endif()
    endif()
    set(line)
    if(manifest)
        file(STRINGS ${manifest} line REGEX "^  \"scratch_bytes\": [0-9]+,$" LIMIT_COUNT 1)
    endif()
    string(REGEX MATCH "[0-9]+" bytes "${line}")
    if(NOT arg_COMMITTED AND program)
        file(REMOVE_RECURSE ${scratch})
    endif()
    set(${result} "${bytes}" PARENT_SCOPE)
endfunction()
