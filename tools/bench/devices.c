/* SPDX-License-Identifier: Apache-2.0
 *
 * Several devices beside each other: each has an engine of its own, planned for it, and
 * as many streams as one alone would have.
 */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>

static int add(struct bench_devices *d, const char *name, size_t length,
               strata_error *err)
{
    if (d->n == BENCH_MAX_DEVICES)
        return error_set(err, STRATA_EINVAL, "--device: %d devices are the most",
                         BENCH_MAX_DEVICES);
    if (length == 0)
        return error_set(err, STRATA_EINVAL,
                         "--device: a name is empty; write cuda:0,cuda:1 or cuda:all");
    d->names[d->n] = strndup(name, length);
    return d->names[d->n++] ? STRATA_OK : error_no_memory(err, length, "devices");
}

/* From 0 on as many as there are. */
static int add_all(struct bench_devices *d, const char *kind, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < BENCH_MAX_DEVICES; i++) {
        strata_handle *h;
        char name[32];
        const int n = snprintf(name, sizeof name, "%s:%d", kind, i);
        const int there = strata_create(&h, name, i == 0 ? err : NULL);
        strata_destroy(h);
        if (there != STRATA_OK)
            return i == 0 ? there : status;
        if ((status = add(d, name, (size_t)n, err)) != STRATA_OK)
            return status;
    }
    return status;
}

int bench_devices_parse(struct bench_devices *d, const char *list, strata_error *err)
{
    int status = STRATA_OK;
    if (!list) { /* as the network says */
        d->n = 1;
        return STRATA_OK;
    }
    if (strcmp(list, "cuda:all") == 0)
        return add_all(d, "cuda", err);
    for (const char *at = list; at && status == STRATA_OK;) {
        const char *comma = strchr(at, ',');
        status = add(d, at, comma ? (size_t)(comma - at) : strlen(at), err);
        at = comma ? comma + 1 : NULL;
    }
    return status;
}

int bench_devices_prepare(struct bench_devices *d, struct tool_options *o,
                          const char *path, strata_error *err)
{
    const char *given = o->device;
    int status = STRATA_OK;
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++) {
        o->device = d->names[i];
        status = tool_prepare(&d->sessions[i], o, path, err);
    }
    o->device = given;
    return status;
}

int bench_devices_plan(struct bench_devices *d, const struct tool_options *o,
                       strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++)
        status = tool_plan(&d->sessions[i], o, err);
    return status;
}

void bench_devices_close(struct bench_devices *d)
{
    for (size_t i = 0; i < d->n; i++) {
        tool_close(&d->sessions[i]);
        free(d->names[i]);
    }
    *d = (struct bench_devices){0};
}
