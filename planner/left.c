/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to run layers that a plan is without because runs of the network were timed: kept
 * to be told, in records, too.
 */
#include "planner/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "io/json.h"

int planner_add_left(struct planner *planner, const struct planner_left *left,
                     strata_error *err)
{
    int status = grow(&planner->left, &planner->left_capacity, planner->n_left,
                      sizeof *planner->left, err);
    if (status != STRATA_OK)
        return status;
    struct planner_left *l = &planner->left[planner->n_left++];
    *l = *left;
    l->layer = duplicate(left->layer, err);
    l->impl = duplicate(left->impl, err);
    return l->layer && l->impl ? STRATA_OK : STRATA_ENOMEM;
}

void planner_free_left(struct planner *planner)
{
    for (size_t i = 0; i < planner->n_left; i++) {
        free(planner->left[i].layer);
        free(planner->left[i].impl);
    }
    free(planner->left);
}

char *planner_left_text(const struct planner_left *l)
{
    char without[TEXT_REAL], with[TEXT_REAL], more[40] = "";
    text_fixed(without, 4, (double)l->without_ns / 1e6);
    text_fixed(with, 4, (double)l->with_ns / 1e6);
    if (l->uses > 1)
        snprintf(more, sizeof more, " and %zu more like it", l->uses - 1);
    return text_print("without %s for '%s'%s a run takes %s ms, %s with it: left",
                      l->impl, l->layer, more, without, with);
}

/* ---- in a record ------------------------------------------------------------------ */

json_t *record_left_json(const struct planner *planner)
{
    json_t *list = json_array();
    for (size_t i = 0; i < planner->n_left; i++) {
        const struct planner_left *l = &planner->left[i];
        list = json_add(list, json_pack("{s:s, s:s, s:I, s:I, s:I}", "layer", l->layer,
                                        "impl", l->impl, "uses", (json_int_t)l->uses,
                                        "with_ns", (json_int_t)l->with_ns, "without_ns",
                                        (json_int_t)l->without_ns));
    }
    return list;
}

int record_read_left(struct planner *planner, const json_t *list, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < json_array_size(list) && status == STRATA_OK; i++) {
        json_error_t wrong;
        json_int_t uses, with, without;
        const char *layer, *impl;
        if (json_unpack_ex(json_array_get(list, i), &wrong, 0,
                           "{s:s, s:s, s:I, s:I, s:I}", "layer", &layer, "impl", &impl,
                           "uses", &uses, "with_ns", &with, "without_ns", &without) != 0)
            return error_set(err, STRATA_EPARSE, "%s", wrong.text);
        if (uses < 1 || with < 0 || without < 0)
            return error_set(err, STRATA_EPARSE, "a way that was left: out of range");
        status = planner_add_left(planner,
                                  &(struct planner_left){.layer = (char *)layer,
                                                         .impl = (char *)impl,
                                                         .uses = (size_t)uses,
                                                         .with_ns = with,
                                                         .without_ns = without},
                                  err);
    }
    return status;
}
