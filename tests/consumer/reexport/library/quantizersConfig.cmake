include(CMakeFindDependencyMacro)
find_dependency(kiln)
include(${CMAKE_CURRENT_LIST_DIR}/quantizers.cmake)
