/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of 3x3 at every pixel by Winograd's transform, F(2x2, 3x3): sixteen
 * products give the four outputs of a tile that take thirty-six by the definition.
 */
#ifndef PLUGINS_CONVOLUTION_WINOGRAD_WINOGRAD_H
#define PLUGINS_CONVOLUTION_WINOGRAD_WINOGRAD_H

#include <stdbool.h>

#include "plugins/common/product/tile.h"
#include "plugins/common/window.h"

#define WINOGRAD_SPOTS 16 /* of a transformed tile: 4x4 */
#define WINOGRAD_STEP 2   /* outputs of a tile along a side */
#define WINOGRAD_UNIT 8   /* channels that are transformed at once */
#define WINOGRAD_SKEW 16  /* floats between spots, which then lie in other cache sets */

/* How tiles are worked on, in groups of as many as a product has rows: in blocks, each a
 * thread's own, or all of them by all threads, which then share filters. */
struct winograd_plan {
    bool shared;
    int threads;
    int64_t groups;       /* transformed at once */
    int64_t part;         /* of them multiplied at once */
    size_t tiles_bytes;   /* of transformed tiles, each thread's or shared */
    size_t product_bytes; /* of products, each thread's */
};

struct winograd {
    struct window w;
    struct winograd_plan plan;
    const struct tile_set *set;
    const float *weights; /* [panel][spot][channel][its columns] */
    int64_t channels, filters;
    int64_t unit, units, panels; /* columns of a unit; units of filters, in panels */
};

static inline int64_t winograd_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Floats of a transformed tile at a spot. */
static inline int64_t winograd_depth(const struct winograd *s)
{
    return winograd_round_up(s->channels, WINOGRAD_UNIT);
}

/* Floats from a spot to the next of so many tiles. */
static inline int64_t winograd_spot(const struct winograd *s, int64_t rows)
{
    return rows * winograd_depth(s) + WINOGRAD_SKEW;
}

/* First unit of a panel. */
static inline int64_t winograd_first_unit(const struct winograd *s, int64_t panel)
{
    return s->units * panel / s->panels;
}

int winograd_accept(const strata_node *n);
size_t winograd_workspace(const strata_node *n);
int winograd_setup(const strata_node *n, void *state);
int winograd_run(const strata_run *r);

#endif /* PLUGINS_CONVOLUTION_WINOGRAD_WINOGRAD_H */
