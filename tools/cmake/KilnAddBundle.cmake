# kiln_add_bundle(NAME CONFIG file.yaml [LOCK file.lock.yaml] [TARGETS sm_80 ...] [PTX name ...] [SHARDS n]
#                 [GENERATOR program] [PACK] [PYTHON] [VERIFY [REFERENCES file.c ...] [UNCOMPARED kernel ...]])
#
# Makes a static library NAME of the kernels that file.yaml names. Whoever links it gets NAME.h and the kiln runtime.
# NAME.c, NAME.h, NAME.json (the manifest) and NAME.d are made at build time in the current binary folder, and only
# written when their bytes change: touching the configuration, or building kiln anew, recompiles nothing by itself.
#
#   LOCK       the lock file that `kiln choose` wrote, with the variants of items with shapes; default: file.lock.yaml
#              beside the configuration, where it is or as soon as it is there
#   TARGETS    replaces the configuration's targets; 80 is short for sm_80
#   PTX        what kiln_add_ptx compiled under these names, each for an item `ptx: name` of the configuration
#   SHARDS     spreads the families over n files more, NAME_1.c and on, which compile in parallel: a change of one
#              family recompiles its shard and NAME.c, which is the index then
#   GENERATOR  the program that writes the bundle, a path or a target: a kiln with families of one's own
#   VERIFY     makes the program NAME_verify too, by kiln_add_verify(NAME_verify NAME), with REFERENCES and UNCOMPARED
#   PACK       makes the shared object NAME_pack.so too, the target NAME_pack, for programs that open it when they run: it
#              shows NAME_index alone, and brings with it what its functions call of the runtime
#   PYTHON     makes the shared object NAME_python.so too, the target NAME_python, which shows NAME's functions and the
#              runtime's, and puts kiln.py beside it and NAME.json, with which Python calls them
#
# NAME is the bundle's name. What a configuration says after "bundle:" decides what its files and functions are called,
# and only the generator reads YAML; but the build has to know the files' names before it runs. So the line is compared
# here, whenever the configuration changes, and has to stand at the start of a line: "bundle: NAME".
#
# With LOCK the target may have another name than the bundle, so that a configuration is built twice: with the variants
# that ship, and with candidates to measure. Its files are then in the folder NAME of the current binary folder. Both
# define the same functions, so a program links one of them.
#
# So is a line "compress: zstd", for which NAME links the decoder of compressed images, kiln::zstd, too.
#
# The generator is the kiln that this build makes, or that find_package found. A cross build cannot run one for the other
# machine: set KILN_HOST_EXECUTABLE to a kiln of the machine that builds, or import one as kiln::kiln.
#
# The library can be installed and exported: install(TARGETS NAME EXPORT ... PUBLIC_HEADER DESTINATION include INCLUDES
# DESTINATION include) brings NAME.h, and the package's own configuration says find_dependency(kiln).
include_guard(GLOBAL)

set(KILN_HOST_EXECUTABLE "" CACHE FILEPATH "The kiln that generates bundles; empty for the one that this build makes")

# Bundles are written in C, which a project of C++ alone does not have: it is enabled here, in the caller's folder, which a
# function cannot do. An argument is a list: an empty one is left out.
macro(kiln_add_bundle)
    _kiln_add_bundle(${ARGV})
    if(_kiln_lacks_c)
        enable_language(C)
        _kiln_add_bundle(${ARGV})
    endif()
endmacro()

function(_kiln_add_bundle)
    set(usage "it is called as kiln_add_bundle(NAME CONFIG file.yaml [LOCK file.lock.yaml] [TARGETS sm_80 ...] \
[PTX name ...] [SHARDS n] [GENERATOR program] [PACK] [PYTHON] [VERIFY [REFERENCES file.c ...] [UNCOMPARED kernel ...]])")
    if(ARGC EQUAL 0)
        message(FATAL_ERROR "kiln_add_bundle: the bundle's name is missing; ${usage}")
    endif()
    set(name ${ARGV0})
    cmake_parse_arguments(PARSE_ARGV 1 arg "VERIFY;PACK;PYTHON" "CONFIG;LOCK;SHARDS;GENERATOR" "TARGETS;PTX;REFERENCES;UNCOMPARED")
    _kiln_check_arguments()
    cmake_path(ABSOLUTE_PATH arg_CONFIG BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE config)
    _kiln_find_bundle_name(bundle ${config})
    _kiln_find_lock(lock ${config})
    _kiln_find_codec(codec ${config})
    _kiln_find_generator(generator)
    set(_kiln_lacks_c OFF PARENT_SCOPE)
    if(NOT CMAKE_C_COMPILER_LOADED)
        set(_kiln_lacks_c ON PARENT_SCOPE)
        return()
    endif()
    set(folder ${CMAKE_CURRENT_BINARY_DIR})
    if(NOT bundle STREQUAL name)
        string(APPEND folder /${name})
    endif()
    _kiln_generate()

    add_library(${name} STATIC ${sources})
    set_source_files_properties(${outputs} PROPERTIES GENERATED ON)
    add_dependencies(${name} ${name}_kernels)
    target_compile_features(${name} PRIVATE c_std_11)
    target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections) # for --gc-sections: see NAME.h
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${folder}>)
    target_link_libraries(${name} PUBLIC kiln::runtime ${codec})
    set_target_properties(${name} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        PUBLIC_HEADER ${folder}/${bundle}.h
        KILN_BUNDLE ${bundle}
        KILN_MANIFEST ${folder}/${bundle}.json)
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
        set_target_properties(${name}_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder})
        _kiln_find_python_module(module)
        configure_file(${module} ${folder}/kiln.py COPYONLY)
    endif()
endfunction()

# The target NAME_KIND, a shared object of the bundle that shows these symbols and brings with it what is linked.
macro(_kiln_add_shared kind symbols)
    file(CONFIGURE OUTPUT ${folder}/${bundle}_${kind}.map CONTENT "{ global: ${symbols}; local: *; };\n" @ONLY)
    add_library(${name}_${kind} MODULE $<TARGET_OBJECTS:${name}>)
    target_link_libraries(${name}_${kind} PRIVATE ${ARGN} ${codec})
    target_link_options(${name}_${kind} PRIVATE -Wl,--version-script=${folder}/${bundle}_${kind}.map)
    set_target_properties(${name}_${kind} PROPERTIES
        LINKER_LANGUAGE C
        PREFIX ""
        OUTPUT_NAME ${bundle}_${kind}
        LINK_DEPENDS ${folder}/${bundle}_${kind}.map)
    if(NOT bundle STREQUAL name)
        set_target_properties(${name}_${kind} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder})
    endif()
endmacro()

# The command that makes ${sources} and ${outputs}.
macro(_kiln_generate)
    set(sources ${folder}/${bundle}.c)
    set(options)
    if(lock)
        list(APPEND options --lock ${lock})
    endif()
    if(arg_TARGETS)
        list(JOIN arg_TARGETS "," targets)
        list(APPEND options --targets ${targets})
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
        foreach(shard RANGE 1 ${arg_SHARDS})
            list(APPEND sources ${folder}/${bundle}_${shard}.c)
        endforeach()
    endif()
    set(outputs ${sources} ${folder}/${bundle}.h ${folder}/${bundle}.json)
    if(CMAKE_GENERATOR MATCHES "Ninja") # an output whose bytes did not change counts as new
        set(witness ${outputs})
        set(made OUTPUT ${outputs})
        set(inputs ${config})
    else() # make would run the command for ever, were there no file that is newer than its inputs; nor sees it the options
        set(witness ${folder}/${bundle}.stamp)
        set(made OUTPUT ${witness} BYPRODUCTS ${outputs})
        set(inputs ${config} ${folder}/${bundle}.options)
        list(APPEND options --stamp ${witness})
        file(CONFIGURE OUTPUT ${folder}/${bundle}.options CONTENT "${generator} ${options}\n" @ONLY)
    endif()
    add_custom_command(
        ${made} DEPFILE ${folder}/${bundle}.d
        COMMAND ${generator} generate ${config} --quiet --output ${folder} ${options}
        DEPENDS ${inputs} ${lock} ${ptx_files} ${generator}
        COMMENT "Generating the kernels of ${name}"
        VERBATIM)
    add_custom_target(${name}_kernels DEPENDS ${witness})
    if(arg_PTX)
        add_dependencies(${name}_kernels ${arg_PTX})
    endif()
endmacro()

function(_kiln_bundle_error text) # in quotes: a list would lose its semicolons
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
    if(NOT arg_CONFIG)
        _kiln_bundle_error("CONFIG file.yaml is missing")
    endif()
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

# A target or a program, that runs on this machine.
function(_kiln_find_generator result)
    set(generator kiln::kiln)
    set(wanted "a kiln that runs on this machine: build one there, and set KILN_HOST_EXECUTABLE to its path")
    if(DEFINED arg_GENERATOR)
        set(generator ${arg_GENERATOR})
        set(wanted "a program that runs on this machine")
    elseif(KILN_HOST_EXECUTABLE)
        set(generator ${KILN_HOST_EXECUTABLE})
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

# What the configuration says after "bundle:".
function(_kiln_find_bundle_name result config)
    if(NOT EXISTS ${config})
        _kiln_bundle_error("there is no ${config}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${config})
    file(STRINGS ${config} line REGEX "^bundle:" LIMIT_COUNT 1)
    if(NOT line MATCHES "^bundle:[ \t]+[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?[ \t\r]*(#.*)?$")
        _kiln_bundle_error("${config} has no line 'bundle: ${name}'")
    endif()
    if(NOT CMAKE_MATCH_1 STREQUAL name AND NOT arg_LOCK)
        _kiln_bundle_error("${config} says 'bundle: ${CMAKE_MATCH_1}'; the two names must be the same, except with LOCK")
    endif()
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# The lock file to name to the generator. The one beside the configuration is looked for at every build, so that the kernels
# are generated anew when it comes or goes.
function(_kiln_find_lock result config)
    set(lock ${arg_LOCK})
    file(STRINGS ${config} shapes REGEX "^[^#]*shapes[ \t]*:" LIMIT_COUNT 1)
    if(lock)
        cmake_path(ABSOLUTE_PATH lock BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        get_source_file_property(is_made ${lock} GENERATED)
        if(NOT EXISTS ${lock} AND NOT is_made)
            _kiln_bundle_error("there is no ${lock}; `kiln choose ${config} -o ${lock}` writes it. To build kiln itself first, leave this call out")
        endif()
    elseif(shapes)
        string(REGEX REPLACE "[.]yaml$" "" stem "${config}")
        string(REGEX REPLACE "([[*?])" "[\\1]" stem "${stem}")
        file(GLOB lock CONFIGURE_DEPENDS "${stem}.lock.yaml")
    endif()
    set(${result} ${lock} PARENT_SCOPE)
endfunction()

# kiln.py: of the source tree, or beside this file where kiln is installed.
function(_kiln_find_python_module result)
    set(module ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../python/kiln.py)
    if(NOT EXISTS ${module})
        set(module ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kiln.py)
    endif()
    set(${result} ${module} PARENT_SCOPE)
endfunction()

# The library that expands the bundle's images; empty where they are not compressed.
function(_kiln_find_codec result config)
    set(codec)
    file(STRINGS ${config} line REGEX "^compress:" LIMIT_COUNT 1)
    if(line)
        set(codec kiln::zstd)
    endif()
    if(codec AND NOT TARGET ${codec})
        _kiln_bundle_error("${config} says '${line}', but there is no ${codec}: install libzstd-dev, with which kiln builds it")
    endif()
    set(${result} ${codec} PARENT_SCOPE)
endfunction()
