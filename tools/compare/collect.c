/* SPDX-License-Identifier: Apache-2.0
 *
 * Every tensor of a run, taken right after the step that made it: memory is used again
 * later. The plan stays as it is, so what is compared is what runs.
 */
#include "tools/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "calibrate/watch.h"

const struct compare_tensor *compare_find(const struct compare_side *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

void compare_side_free(struct compare_side *s)
{
    for (size_t i = 0; i < s->n; i++)
        values_free(&s->tensors[i].values);
    free(s->tensors);
    strata_context_destroy(s->context);
    tool_close(&s->session);
}

/* Of what layers make, once each. */
static int collect_value(void *of, strata_context *c, int value,
                         const struct execution_node *n, strata_error *err)
{
    struct compare_side *s = of;
    const struct execution_value *v = &c->engine->execution->values[value];
    const struct network_tensor *tensor = watch_tensor(c, value);
    void *raw = NULL;
    if (tensor->producer < 0)
        return STRATA_OK;
    int status = grow(&s->tensors, &s->capacity, s->n, sizeof *s->tensors, err);
    if (status != STRATA_OK)
        return status;
    struct compare_tensor *t = &s->tensors[s->n++];
    *t = (struct compare_tensor){.name = tensor->name,
                                 .layer = n ? n->name : tensor->name,
                                 .impl = n ? n->impl->impl.name : "(joined)",
                                 .format = v->format};
    status = watch_bytes(&raw, c, value, err);
    if (status == STRATA_OK)
        status = values_read(&t->values, &v->desc, raw, t->name, err);
    free(raw);
    return status;
}

/* Put the other side's tensor in a value's place. */
static int feed_value(void *of, strata_context *c, int value,
                      const struct execution_node *n, strata_error *err)
{
    const struct compare_side *s = of;
    const struct execution_value *v = &c->engine->execution->values[value];
    const struct compare_tensor *t = compare_find(s->feed, watch_tensor(c, value)->name);
    (void)n;
    if (!t || t->values.count != strata_desc_count(&v->desc))
        return STRATA_OK;
    void *raw = NULL;
    int status = watch_bytes(&raw, c, value, err);
    if (status == STRATA_OK)
        status = values_write(&t->values, &v->desc, raw, err);
    if (status == STRATA_OK)
        status = watch_set_bytes(c, value, raw, err);
    free(raw);
    return status;
}

int compare_collect(struct compare_side *s, const struct compare_side *feed,
                    strata_error *err)
{
    const struct watcher w = {
        .of = s, .made = collect_value, .read = feed ? feed_value : NULL};
    s->feed = feed;
    return watch_run(s->context, &w, err);
}
