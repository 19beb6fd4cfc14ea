# kiln_add_tune(TARGET BUNDLE [REFERENCES file.c ...])
#
# Makes an executable TARGET that times the variants of the bundle BUNDLE, a library that kiln_add_bundle made, on this
# machine's device, and writes a file for a configuration's `tuned`.
#
#   REFERENCES  C sources that make inputs for your own families, as for kiln_add_verify; without them inputs are random
include_guard(GLOBAL)

function(kiln_add_tune)
    set(usage "it is called as kiln_add_tune(TARGET BUNDLE [REFERENCES file.c ...])")
    if(ARGC LESS 2)
        message(FATAL_ERROR "kiln_add_tune(${ARGV}): TARGET and BUNDLE are needed; ${usage}")
    endif()
    set(target ${ARGV0})
    set(bundle ${ARGV1})
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "REFERENCES")
    set(caller "kiln_add_tune(${target} ${bundle})")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${caller}: unknown argument '${arg_UNPARSED_ARGUMENTS}'; ${usage}")
    endif()
    if(arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${caller}: nothing stands after ${arg_KEYWORDS_MISSING_VALUES}")
    endif()
    if(NOT TARGET ${bundle})
        message(FATAL_ERROR "${caller}: there is no bundle ${bundle}; kiln_add_bundle makes it")
    endif()
    set(references)
    if(arg_REFERENCES)
        set(references REFERENCES ${arg_REFERENCES})
    endif()
    kiln_add_verify(${target} ${bundle} ${references})
    target_link_libraries(${target} PRIVATE kiln::tune)
    target_compile_definitions(${target} PRIVATE KILN_VERIFY_ENTRY=kiln_tune_main)
endfunction()
