/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what was quantised is computed in floats where that costs less ([build]
 * quantised = fastest): regions of the network (network/pairs/pairs.h) are planned with
 * and without their pairs. A plan of all rounded, one of all floats, and the mixture in
 * which each region is as it costs less; then regions are turned over one by one and
 * with their neighbours, each time in a plan of the whole network, as long as that gains:
 * what is between floats and integers has a price, too.
 *
 *   planner_make_mixed
 *     network_find_pairs      the regions; without any, planner_make_merged
 *     planner_make_merged     of all rounded, and without any pair
 *     bill                    each region, in these plans
 *     network_drop_pairs      of some regions, and planner_make of that, time and again
 *     planner_make_merged     of the best
 *
 * Why not a choice within the problem: what may be one layer in floats, as a block of
 * convolutions, has other ends than what is one in integers.
 */
#ifndef PLANNER_MIXED_MIXED_H
#define PLANNER_MIXED_MIXED_H

#include <jansson.h>

#include "network/pairs/pairs.h"
#include "planner/planner.h"

/* What was decided of a region. Costs are of its layers and of the conversions of what
 * they make, in a plan of all rounded and in one of floats. 1/16 ns. */
struct planner_mix {
    int64_t rounded, floats;
    bool dropped;
};

struct planner_mixes {
    strata_network *network; /* a reference: whose pairs they are */
    struct network_pairs pairs;
    struct planner_mix *list; /* of each region */
    bool in_place;            /* costs were timed in place */
    size_t plans;             /* that were made; 0: from a record */
};

/* What regions take in place beyond their prices; NULL: not known. 1/16 ns. */
struct planner_surplus {
    const int64_t *rounded, *floats;
};

/* mixed.c: like planner_make_merged, whose arguments these are; the planner's network is
 * one without some pairs where the options let it be and that costs less. */
int planner_make_mixed(struct planner **out, const strata_network *network,
                       const struct planner_device *device, struct cost_source *costs,
                       strata_error *err);
/* The same once more for the network of a planner that has mixes, by what its regions
 * take in place. */
int planner_mix_again(struct planner **out, const struct planner *before,
                      struct cost_source *costs, const struct planner_surplus *surplus,
                      strata_error *err);
/* A plan of that network with all rounded, or with none. */
int planner_mix_alike(struct planner **out, const struct planner *before, bool dropped,
                      struct cost_source *costs, strata_error *err);
/* bill.c: what each region takes in a plan of such a network: by the prices, or in place.
 */
void planner_mix_bill(int64_t *out, const struct planner_mixes *m,
                      const struct execution *x, bool in_place);

/* memory.c: a source that tells again what it has told for plans before. */
struct cost_memory {
    struct cost_source source;
    struct cost_source *real;
    struct cost_table before, now; /* plans; what is told for this one is timed again */
};
void cost_memory_open(struct cost_memory *m, struct cost_source *real,
                      const struct planner_device *device);
/* What is known from elsewhere. */
int cost_memory_add(struct cost_memory *m, const struct cost_table *known,
                    strata_error *err);
/* For another plan; confirms: whether its own costs are to be timed twice. */
int cost_memory_next(struct cost_memory *m, bool confirms, strata_error *err);
void cost_memory_close(struct cost_memory *m);

/* record.c */
void planner_free_mixes(struct planner_mixes *m);
/* One sentence on a region, the caller's to free. NULL: no memory. */
char *planner_mix_text(const struct planner_mix *v);
/* As a list of JSON, for records and reports. NULL: no memory. */
json_t *planner_mixes_json(const struct planner *planner);
/* The same back, held against a network with all pairs; NULL and no list: none. */
int planner_mixes_read(struct planner_mixes **out, const json_t *list,
                       const strata_network *net, strata_error *err);
/* The network that a record's plan is of, but for what is merged: a reference to `net`
 * where all pairs are there. */
int planner_mix_recorded(strata_network **out, const json_t *list,
                         const strata_network *net, strata_error *err);
/* The network with all pairs, and nothing merged, that a planner's is made of. */
const strata_network *planner_unmixed(const struct planner *planner);

#endif /* PLANNER_MIXED_MIXED_H */
