/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether siblings (network/merge/merge.h) are merged: the network is planned as it is,
 * with every group merged, and where concatenations could take some groups whole, with
 * that, too. Each group's prices in the plans are compared, and of those plans and the
 * one in which each group is as it gains most, the cheapest stays. A gain is real: it was
 * solved for with all that it costs around the group.
 *
 *   planner_make_merged
 *     planner_make            apart
 *     network_find_siblings   the groups; without any, that was all
 *     network_merge           of all of them, and planner_make of that
 *     network_merge           of all, within concatenations, and planner_make
 *     price                   each group, in these plans
 *     network_merge           of those that gain, as they do, if that is another network
 *
 * Why not a choice within the problem: a tensor of a problem has one producer, so merged
 * and apart would be two networks side by side in it, held together by ties around which
 * the solver can neither reduce nor bound; plans are proved in time because there are
 * none.
 */
#ifndef PLANNER_MERGE_MERGE_H
#define PLANNER_MERGE_MERGE_H

#include <jansson.h>

#include "network/merge/merge.h"
#include "planner/planner.h"

/* What was decided about a group. Costs are of its layers, of the layers that read its
 * results, and of the conversions between: what being merged can change; of the better of
 * two ways to be merged. 1/16 ns. */
struct planner_verdict {
    int64_t apart, merged;
    bool done;
    char *why; /* not, where costs do not say it; or NULL */
};

struct planner_merges {
    struct network_groups groups; /* of the network without merged layers */
    struct planner_verdict *verdicts;
};

/* merge.c: like planner_make, whose arguments these are; the planner's network is one
 * with merged layers where that costs less. */
int planner_make_merged(struct planner **out, const strata_network *network,
                        const struct planner_device *device, struct cost_source *costs,
                        strata_error *err);

/* What was decided, to the log. */
void planner_tell_merges(const struct planner *planner);

/* price.c: of each group, whose network is that of `apart`, with all merged in the other
 * plan. */
int planner_merge_prices(struct planner_verdict *out, const struct network_groups *groups,
                         const struct planner *apart, const struct planner *merged,
                         strata_error *err);
/* What a plan's network outputs take that lie in joined tensors. */
int64_t planner_merge_copies(const struct planner *planner);

/* record.c */
void planner_free_merges(struct planner_merges *m);
/* The network whose layers the groups are of. */
const strata_network *planner_unmerged(const struct planner *planner);
/* One sentence on a group, the caller's to free. NULL: no memory. */
char *planner_merge_text(const struct planner_verdict *v);

/* As a list of JSON, for records and reports. NULL: no memory. */
json_t *planner_merges_json(const struct planner *planner);
/* The same back, held against a network without merged layers; NULL and no list: none. */
int planner_merges_read(struct planner_merges **out, const json_t *list,
                        const strata_network *net, strata_error *err);
/* The network that a record's plan is of: a reference to `net` where nothing is merged.
 */
int planner_merge_recorded(strata_network **out, const json_t *list,
                           const strata_network *net, strata_error *err);

#endif /* PLANNER_MERGE_MERGE_H */
