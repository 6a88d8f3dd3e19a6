/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer defines, in arrays with room around them: a definition that writes past
 * its outputs would break the heap, and something else be blamed for it.
 */
#include "check/harness/trial.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 64    /* values before and behind */
#define BYTE 0xa5u /* what they hold */

struct lent {
    unsigned char *memory; /* ROOM values, the output's, `behind` values */
    size_t count, behind;
};

/* Behind an output: as much as an input has, since loops over that are the usual fault.
 */
static size_t room_behind(const struct trial *t)
{
    int64_t most = ROOM;
    for (int i = 0; i < t->node.node.n_in; i++)
        if (t->node.in[i].rank > 0 && t->node.in[i].count > most)
            most = t->node.in[i].count;
    return (size_t)most;
}

static void *values_of(const struct lent *l)
{
    return l->memory + ROOM * VALUE_SIZE;
}

static bool lend(struct lent *l, const strata_tensor *t, size_t behind)
{
    l->count = (size_t)t->count;
    l->behind = behind;
    const size_t bytes = (ROOM + l->count + behind) * VALUE_SIZE;
    if (!(l->memory = malloc(bytes)))
        return false;
    memset(l->memory, (int)BYTE, bytes);
    memset(values_of(l), 0, l->count * VALUE_SIZE);
    return true;
}

static bool is_whole(const unsigned char *memory, size_t values)
{
    for (size_t i = 0; i < values * VALUE_SIZE; i++)
        if (memory[i] != BYTE)
            return false;
    return true;
}

static int check_room(const struct lent *l, int output, strata_error *err)
{
    const unsigned char *behind = l->memory + (ROOM + l->count) * VALUE_SIZE;
    const bool before = !is_whole(l->memory, ROOM);
    return before || !is_whole(behind, l->behind)
               ? error_set(err, STRATA_EINTERNAL, "output %d: it wrote %s the %zu values",
                           output, before ? "before" : "past", l->count)
               : STRATA_OK;
}

int trial_define(struct trial *t, const char **rule)
{
    struct lent lent[HARNESS_OUTPUTS] = {{0}};
    void *out[HARNESS_OUTPUTS];
    const int n = t->node.node.n_out;
    bool done = true;
    for (int i = 0; i < n && done; i++)
        if ((done = lend(&lent[i], &t->node.out[i], room_behind(t))))
            out[i] = values_of(&lent[i]);
    *rule = "reference-failed";
    int status = done ? harness_reference(&t->node, (const void *const *)t->v.in,
                                          (const void *const *)t->v.weight, out)
                      : error_no_memory(&t->node.err, 0, "the reference's values");
    for (int i = 0; i < n && status == STRATA_OK; i++) {
        memcpy(t->v.expected[i], out[i], lent[i].count * VALUE_SIZE);
        if ((status = check_room(&lent[i], i, &t->node.err)) != STRATA_OK)
            *rule = "reference-bounds";
    }
    for (int i = 0; i < n; i++)
        free(lent[i].memory);
    return status;
}
