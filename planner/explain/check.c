/* SPDX-License-Identifier: Apache-2.0
 *
 * A report from a file held against what is read in it, so that no reader has to ask
 * whether a name is a text or a cost a number that can be subtracted.
 */
#include "planner/explain/explain.h"

#include <inttypes.h>
#include <string.h>

#define REMEDY "make one with `strata explain NET.ini --save-plan FILE`"

/* The lists of a report that are read, and what each of their entries has. */
static const struct {
    const char *within, *name; /* within NULL: of the report itself */
    const char *texts[4], *lists[3];
    bool has_cost;
} lists[] = {
    {NULL, "nodes", {"name", "impl"}, {"reads", "writes"}, true},
    {NULL, "tensors", {"name", "impl", "produced"}, {NULL}, false},
    {NULL, "reformats", {"tensor", "from", "to"}, {NULL}, true},
    {"costs", "choices", {"name", "impl"}, {"reads", "writes"}, true},
    {"costs", "conversions", {"from", "to"}, {NULL}, true},
};

static bool has_texts(const json_t *entry, const char *const *keys, const char **missing)
{
    for (; *keys; keys++)
        if (!json_is_string(json_object_get(entry, *missing = *keys)))
            return false;
    return true;
}

static bool has_lists(const json_t *entry, const char *const *keys, const char **missing)
{
    for (; *keys; keys++) {
        const json_t *list = json_object_get(entry, *missing = *keys);
        if (!json_is_array(list))
            return false;
        for (size_t i = 0; i < json_array_size(list); i++)
            if (!json_is_string(json_array_get(list, i)))
                return false;
    }
    return true;
}

static bool has_cost(const json_t *object, const char **missing)
{
    const json_t *cost = json_object_get(object, *missing = "cost");
    const json_int_t value = json_integer_value(cost);
    return json_is_integer(cost) && value >= 0 && value <= PLAN_INFINITE;
}

static int check_list(const json_t *report, size_t k, const char *name, strata_error *err)
{
    const char *within = lists[k].within, *wrong = NULL;
    const json_t *list =
        json_object_get(within ? json_object_get(report, within) : report, lists[k].name);
    if (!json_is_array(list))
        return error_set(err, STRATA_EPARSE,
                         "%s: no saved plan: it has no list '%s'; " REMEDY, name,
                         lists[k].name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (!has_texts(entry, lists[k].texts, &wrong) ||
            !has_lists(entry, lists[k].lists, &wrong) ||
            (lists[k].has_cost && !has_cost(entry, &wrong)))
            return error_set(
                err, STRATA_EPARSE,
                "%s: no saved plan: '%s' of entry %zu in '%s' is missing, of "
                "the wrong kind or out of range; " REMEDY,
                name, wrong, i, lists[k].name);
    }
    return STRATA_OK;
}

int explain_check(const json_t *report, const char *name, strata_error *err)
{
    const char *wrong;
    const json_t *version = json_object_get(report, "plan");
    if (!json_is_integer(version) || json_integer_value(version) != EXPLAIN_PLAN_VERSION)
        return error_set(err, STRATA_EPARSE, "%s: no saved plan of version %d; " REMEDY,
                         name, EXPLAIN_PLAN_VERSION);
    if (!has_cost(json_object_get(report, "totals"), &wrong))
        return error_set(err, STRATA_EPARSE,
                         "%s: no saved plan: 'cost' in 'totals' is missing or out of "
                         "range; " REMEDY,
                         name);
    int status = STRATA_OK;
    for (size_t k = 0; k < sizeof lists / sizeof *lists && status == STRATA_OK; k++)
        status = check_list(report, k, name, err);
    return status;
}
