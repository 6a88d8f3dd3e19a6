/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffle, an element at a time: for reshapes whose sides have no common factors.
 */
#ifndef PLUGINS_SHUFFLE_EACH_H
#define PLUGINS_SHUFFLE_EACH_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Dims around the reshape, as struct shuffle of plugins/shuffle/shuffle.h has them. */
struct shuffle_each {
    strata_tensor x, y;
    int64_t from[STRATA_MAX_RANK], to[STRATA_MAX_RANK];
    int32_t from_dim[STRATA_MAX_RANK], to_dim[STRATA_MAX_RANK];
    int32_t from_rank, to_rank, size; /* size: bytes of an element */
};

/* cudaError_t of the launch. */
int shuffle_each_start(const struct shuffle_each *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_SHUFFLE_EACH_H */
