# _kiln_meet(OTHER PROBLEM VERSION LAYOUT FOLDER)
#
# A build uses one kiln, though it may find several: as a subfolder, by find_package, by a package that finds it. The first one
# serves all. If the kiln in FOLDER is a later one, sets OTHER to the first one's folder, or PROBLEM to the reason why one build
# cannot have both.
include_guard(GLOBAL)

function(_kiln_meet other problem version layout folder)
    set(${other} "" PARENT_SCOPE)
    set(${problem} "" PARENT_SCOPE)
    get_property(first GLOBAL PROPERTY KILN_FIRST)
    if(NOT first)
        set_property(GLOBAL PROPERTY KILN_FIRST "${version}" "${layout}" "${folder}")
        return()
    endif()
    list(POP_FRONT first first_version first_layout)
    if(first STREQUAL folder AND NOT TARGET kiln_runtime) # the same package was found again
        return()
    endif()
    if(NOT "${version} ${layout}" STREQUAL "${first_version} ${first_layout}")
        set(${problem} "one build has two kilns that differ: ${first_version} of layout ${first_layout} in ${first}, and ${version} \
of layout ${layout} in ${folder}. Leave one out, or make both the same" PARENT_SCOPE)
    elseif(TARGET kiln::runtime) # false if find_package defined the first one's targets in a sibling folder
        set(${other} "${first}" PARENT_SCOPE)
    endif()
endfunction()
