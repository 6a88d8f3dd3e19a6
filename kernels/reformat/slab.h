/* SPDX-License-Identifier: Apache-2.0
 *
 * How tensors are cut into slabs: what slab.c does for floats and bytes.c for bytes.
 */
#ifndef KERNELS_REFORMAT_SLAB_H
#define KERNELS_REFORMAT_SLAB_H

#include "kernels/reformat/request.h"

/* A side before it is cut, in elements. */
struct side {
    int64_t size;                    /* bytes of an element */
    int64_t channels, lanes, blocks; /* of dst with its pads */
    int64_t block, pixel;            /* strides */
    const char *data;
};

struct cut {
    int64_t channels, pixels, images; /* of a tile */
    int64_t spare;                    /* bytes of a stage that follow the tile */
    bool any_start; /* tiles of dst that are one piece of memory may lie anywhere */
};

/* How the channels of a layout lie in memory. */
enum order { PLANES, BLOCKS, LANES };

enum order slab_order(const strata_desc *d);
int64_t slab_pixels(const strata_desc *d);

struct side slab_side(const struct request *r, bool in_dst);
/* Lanes, and bytes, of a tile. */
int64_t slab_lanes(const struct side *s, int64_t channels);
int64_t slab_bytes(const struct side *s, const struct cut *c);
/* Whether a tile is one piece of memory. */
bool slab_is_dense(const struct side *s, const struct cut *c, int64_t pixels);
/* Images that follow each other without a gap may share a tile. */
bool slab_images_join(const struct request *r, const struct side *to,
                      const struct side *from, const struct cut *c);
/* Whether a tile fits its room, and `most` bytes of the destination. */
bool slab_fits(const struct side *to, const struct side *from, const struct cut *c,
               int64_t most);
/* Whether planes, where there are any, begin where sectors of the L2 cache do: parts of
 * others would share them. */
bool slab_on_sectors(const struct side *s);
/* Whether tiles may hold so many of the channels. */
bool slab_cuts_channels(const struct request *r, const struct side *to,
                        const struct side *from, int64_t channels);
/* All of a job but what its threads make. */
bool slab_lay_cut(struct reformat_slab *j, const struct request *r, const struct side *to,
                  const struct side *from, const struct cut *c);

#endif /* KERNELS_REFORMAT_SLAB_H */
