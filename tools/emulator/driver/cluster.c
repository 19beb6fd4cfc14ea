/* Clusters of thread blocks: attributes of functions, and the sizes that a launch may have. */
#include "api.h"

enum { PORTABLE_BLOCKS = 8 }; /* the largest cluster of a function that does not allow larger ones */

/* CUfunction_attribute */
enum {
    MUST_BE_SET = 10,
    REQUIRED_WIDTH = 11,
    REQUIRED_DEPTH = 13,
    ALLOWS_LARGE = 14,
    SCHEDULING_POLICY = 15,
};

static bool is_required_extent(int attribute)
{
    return attribute >= REQUIRED_WIDTH && attribute <= REQUIRED_DEPTH;
}

bool emu_get_cluster_attribute(CUfunction f, int attribute, int *value)
{
    if (is_required_extent(attribute))
        *value = f->cluster[attribute - REQUIRED_WIDTH];
    else if (attribute == MUST_BE_SET)
        *value = f->function->needs_cluster;
    else if (attribute == ALLOWS_LARGE)
        *value = f->allows_large_clusters;
    else if (attribute == SCHEDULING_POLICY)
        *value = f->cluster_scheduling;
    else
        return false;
    return true;
}

bool emu_set_cluster_attribute(CUfunction f, int attribute, int value, CUresult *result)
{
    *result = CUDA_SUCCESS;
    if (is_required_extent(attribute) && f->function->cluster[0])
        *result = CUDA_ERROR_NOT_PERMITTED; /* set when it was compiled */
    else if (is_required_extent(attribute) && value >= 0)
        f->cluster[attribute - REQUIRED_WIDTH] = value;
    else if (attribute == ALLOWS_LARGE && (value == 0 || value == 1))
        f->allows_large_clusters = value;
    else if (attribute == SCHEDULING_POLICY && value >= 0 && value <= 2)
        f->cluster_scheduling = value;
    else
        return false;
    return true;
}

/* The required extents are all given or all 0. */
CUresult emu_choose_cluster(CUfunction f, const uint32_t *given, uint32_t cluster[3], bool *is_explicit)
{
    bool is_required = f->cluster[0] || f->cluster[1] || f->cluster[2];
    *is_explicit = given || is_required;
    if (!*is_explicit && f->function->needs_cluster)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++) {
        uint32_t required = (uint32_t)f->cluster[i];
        cluster[i] = given ? given[i] : is_required ? required : 1;
        if (cluster[i] == 0 || (is_required && cluster[i] != required))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return CUDA_SUCCESS;
}

unsigned emu_most_cluster_blocks(CUfunction f)
{
    unsigned most = f->allows_large_clusters ? EMU_MOST_CLUSTER_BLOCKS : PORTABLE_BLOCKS;
    unsigned declared = f->function->max_cluster_blocks;
    return declared && declared < most ? declared : most;
}

/* The extents divide those of the grid: CUlaunchAttributeValue's clusterDim. */
CUresult emu_check_cluster(CUfunction f, const uint32_t grid[3], const uint32_t cluster[3])
{
    bool fits = cluster[0] <= EMU_MOST_CLUSTER_BLOCKS && cluster[1] <= EMU_MOST_CLUSTER_BLOCKS &&
                (uint64_t)cluster[0] * cluster[1] * cluster[2] <= emu_most_cluster_blocks(f);
    for (int i = 0; i < 3; i++)
        fits &= grid[i] % cluster[i] == 0;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}
