# kiln_add_bundle(NAME CONFIG file.yaml)
#
# Makes a static library NAME of the kernels that file.yaml names. Whoever links it gets NAME.h and the kiln runtime.
# NAME.c, NAME.h, NAME.json (the manifest) and NAME.d are made at build time in the current binary folder, and only
# written when their bytes change: touching the configuration, or building kiln anew, recompiles nothing by itself.
#
# NAME is the bundle's name. What a configuration says after "bundle:" decides what its files and functions are called,
# and only the generator reads YAML; but the build has to know the files' names before it runs. So the line is compared
# here, whenever the configuration changes, and has to stand at the start of a line: "bundle: NAME".
#
# The generator is the kiln that this build makes. A cross build cannot run that one: set KILN_HOST_EXECUTABLE to a kiln
# of the machine that builds.
include_guard(GLOBAL)

set(KILN_HOST_EXECUTABLE "" CACHE FILEPATH "The kiln that generates bundles; empty for the one that this build makes")

function(kiln_add_bundle name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "CONFIG" "")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "kiln_add_bundle(${name}): unknown argument '${arg_UNPARSED_ARGUMENTS}'; "
                            "it is called as kiln_add_bundle(NAME CONFIG file.yaml)")
    endif()
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
        message(FATAL_ERROR "kiln_add_bundle(${name}): the name of a bundle is a C identifier")
    endif()
    if(NOT arg_CONFIG)
        message(FATAL_ERROR "kiln_add_bundle(${name}): CONFIG file.yaml is missing")
    endif()
    if(TARGET ${name})
        message(FATAL_ERROR "kiln_add_bundle(${name}): there is a target of that name already")
    endif()
    cmake_path(ABSOLUTE_PATH arg_CONFIG BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE config)
    _kiln_check_bundle_name(${name} ${config})

    set(generator kiln::kiln)
    if(KILN_HOST_EXECUTABLE)
        set(generator ${KILN_HOST_EXECUTABLE})
    elseif(CMAKE_CROSSCOMPILING)
        message(FATAL_ERROR "kiln_add_bundle(${name}): a cross build needs KILN_HOST_EXECUTABLE, a kiln that runs here")
    endif()

    set(folder ${CMAKE_CURRENT_BINARY_DIR})
    set(outputs ${folder}/${name}.c ${folder}/${name}.h ${folder}/${name}.json)
    if(CMAKE_GENERATOR MATCHES "Ninja") # an output whose bytes did not change counts as new
        set(made OUTPUT ${outputs} DEPFILE ${folder}/${name}.d)
        set(witness ${outputs})
        set(touch "")
    else() # make would run the command for ever, were there no file that is newer than its inputs
        set(witness ${folder}/${name}.stamp)
        set(made OUTPUT ${witness} BYPRODUCTS ${outputs})
        set(touch COMMAND ${CMAKE_COMMAND} -E touch ${witness})
    endif()
    add_custom_command(
        ${made}
        COMMAND ${generator} generate ${config} --output ${folder}
        ${touch}
        DEPENDS ${config} ${generator}
        COMMENT "Generating the kernels of ${name}"
        VERBATIM)
    add_custom_target(${name}_kernels DEPENDS ${witness})

    add_library(${name} STATIC ${folder}/${name}.c)
    set_source_files_properties(${outputs} PROPERTIES GENERATED ON)
    add_dependencies(${name} ${name}_kernels)
    target_compile_features(${name} PRIVATE c_std_11)
    target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections) # for --gc-sections: see NAME.h
    target_include_directories(${name} PUBLIC ${folder})
    target_link_libraries(${name} PUBLIC kiln::runtime)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

function(_kiln_check_bundle_name name config)
    if(NOT EXISTS ${config})
        message(FATAL_ERROR "kiln_add_bundle(${name}): there is no ${config}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${config})
    file(STRINGS ${config} line REGEX "^bundle:" LIMIT_COUNT 1)
    if(NOT line MATCHES "^bundle:[ \t]+[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?[ \t\r]*(#.*)?$")
        message(FATAL_ERROR "kiln_add_bundle(${name}): ${config} has no line 'bundle: ${name}'")
    endif()
    if(NOT CMAKE_MATCH_1 STREQUAL name)
        message(FATAL_ERROR "kiln_add_bundle(${name}): ${config} says 'bundle: ${CMAKE_MATCH_1}'; the two names "
                            "must be the same")
    endif()
endfunction()
