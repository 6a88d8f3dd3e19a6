/* SPDX-License-Identifier: Apache-2.0
 *
 * A network on the host from INI file to context.
 */
#include "tests/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

const struct variant variants[VARIANTS] = {
    {"fp32 any", "fp32", NULL, true, 0, 1e-4},
    {"fp16 any", "fp16", NULL, false, 1e-5, 2e-2}, /* less would not be FP16 */
    {"any any", "any", NULL, false, 0, 2e-2},
    {"fp32:nchw", "fp32", "fp32:nchw", true, 0, 1e-4},
    {"fp16:nchw", "fp16", "fp16:nchw", false, 1e-5, 2e-2},
    {"fp16:nc/2hw2", "fp16", "fp16:nc/2hw2", false, 1e-5, 2e-2},
    {"fp16:nhwc8", "fp16", "fp16:nhwc8", false, 1e-5, 2e-2},
};

static void load_network(struct session *s, const char *ini, const struct variant *f,
                         int batch)
{
    static strata_error err;
    char precision[64], formats[64], define[64];
    const char *set[] = {precision, formats};
    const char *defines[] = {define};
    const strata_network_options options = {.struct_size = sizeof options,
                                            .set = set,
                                            .n_set = f->formats ? 2 : 1,
                                            .define = defines,
                                            .n_define = 1};
    snprintf(precision, sizeof precision, "build.precision=%s", f->precision);
    snprintf(formats, sizeof formats, "build.formats=%s", f->formats ? f->formats : "");
    snprintf(define, sizeof define, "batch=%d", batch);
    cr_assert(!strata_network_load(&s->network, ini, s->registry, &options, &err), "%s",
              err.message);
}

void session_open(struct session *s, const char *ini, const struct variant *f, int batch)
{
    static strata_error err;
    memset(s, 0, sizeof *s);
    s->name = f->name;
    cr_assert(!strata_create(&s->handle, "host", &err), "%s", err.message);
    cr_assert(!strata_registry_create(&s->registry, NULL, &err), "%s", err.message);
    load_network(s, ini, f, batch);
    cr_assert(!strata_engine_build(&s->engine, s->handle, s->network, &err), "%s: %s",
              s->name, err.message);
    cr_assert(!strata_context_create(&s->context, s->engine, s->handle, &err), "%s: %s",
              s->name, err.message);
}

void session_close(struct session *s)
{
    strata_context_destroy(s->context);
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_registry_destroy(s->registry);
    strata_destroy(s->handle);
}

float *session_data(const struct session *s, const char *name, size_t count)
{
    static strata_error err;
    strata_binding b;
    int index = strata_engine_find(s->engine, name);
    cr_assert(index >= 0, "%s: no binding '%s'", s->name, name);
    cr_assert(!strata_engine_binding(s->engine, index, &b, &err), "%s", err.message);
    cr_assert(!strcmp(b.format, "fp32:nchw") && (size_t)b.bytes == count * sizeof(float),
              "%s: '%s' is %s of %lld bytes, not %zu floats", s->name, name, b.format,
              (long long)b.bytes, count);
    return strata_context_data(s->context, index);
}

void session_run(const struct session *s)
{
    static strata_error err;
    cr_assert(!strata_context_run(s->context, &err), "%s: %s", s->name, err.message);
}
