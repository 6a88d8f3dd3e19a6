/* SPDX-License-Identifier: Apache-2.0
 *
 * A network from INI file to context.
 */
#include "tests/engine/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "registry/math/mode.h"

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
    const char *set[] = {precision, "build.costs=analytic", formats};
    const char *defines[] = {define};
    const strata_network_options options = {.struct_size = sizeof options,
                                            .set = set,
                                            .n_set = f->formats ? 3 : 2,
                                            .define = defines,
                                            .n_define = batch > 0};
    snprintf(precision, sizeof precision, "build.precision=%s", f->precision);
    snprintf(formats, sizeof formats, "build.formats=%s", f->formats ? f->formats : "");
    snprintf(define, sizeof define, "batch=%d", batch);
    cr_assert(!strata_network_load(&s->network, ini, s->registry, &options, &err), "%s",
              err.message);
}

void session_open(struct session *s, const char *ini, const struct variant *f, int batch)
{
    static strata_error err;
    const char *math = getenv("STRATA_TEST_MATH");
    memset(s, 0, sizeof *s);
    s->name = f->name;
    cr_assert(!strata_create(&s->handle, getenv("STRATA_TEST_DEVICE"), &err), "%s",
              err.message);
    int mode;
    if (math && math_from_name(math, &mode))
        strata_set_math_mode(s->handle, mode, NULL);
    cr_assert(!strata_registry_create(&s->registry, NULL, &err), "%s", err.message);
    load_network(s, ini, f, batch);
    cr_assert(!strata_engine_build(&s->engine, s->handle, s->network, &err), "%s: %s",
              s->name, err.message);
    cr_assert(!strata_context_create(&s->context, s->engine, s->handle, &err), "%s: %s",
              s->name, err.message);
    cr_assert(strata_engine_bindings(s->engine) <= SESSION_BINDINGS);
}

void session_close(struct session *s)
{
    strata_context_destroy(s->context);
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_registry_destroy(s->registry);
    strata_destroy(s->handle);
    for (int i = 0; i < SESSION_BINDINGS; i++)
        free(s->data[i]);
}

float *session_data(struct session *s, const char *name, size_t count)
{
    static strata_error err;
    strata_binding b = {.struct_size = sizeof b};
    int index = strata_engine_find(s->engine, name);
    cr_assert(index >= 0, "%s: no binding '%s'", s->name, name);
    cr_assert(!strata_engine_binding(s->engine, index, &b, &err), "%s", err.message);
    cr_assert(!strcmp(b.format, "fp32:nchw") && (size_t)b.bytes == count * sizeof(float),
              "%s: '%s' is %s of %lld bytes, not %zu floats", s->name, name, b.format,
              (long long)b.bytes, count);
    if (s->data[index])
        return s->data[index];
    cr_assert((s->data[index] = calloc(count, sizeof(float))) != NULL);
    cr_assert(!strata_copy_out(s->context, index, s->data[index], &err), "%s: %s",
              s->name, err.message);
    return s->data[index];
}

void session_run(struct session *s)
{
    static strata_error err;
    strata_binding b = {.struct_size = sizeof b};
    int status = STRATA_OK;
    for (int i = 0; i < strata_engine_bindings(s->engine) && !status; i++)
        if (s->data[i] && !strata_engine_binding(s->engine, i, &b, &err) && b.is_input)
            status = strata_copy_in(s->context, i, s->data[i], &err);
    if (!status)
        status = strata_context_run(s->context, &err);
    for (int i = 0; i < strata_engine_bindings(s->engine) && !status; i++)
        if (s->data[i] && !strata_engine_binding(s->engine, i, &b, &err) && !b.is_input)
            status = strata_copy_out(s->context, i, s->data[i], &err);
    cr_assert(!status, "%s: %s", s->name, err.message);
}

/* The engine by way of a file, in a context of its own. */
static void reload(struct session *s, strata_engine **engine, strata_context **context)
{
    static strata_error err;
    char path[] = "/tmp/strata-engine-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && !close(fd));
    int status = strata_engine_save(s->engine, path, &err);
    if (!status)
        status = strata_engine_load(engine, s->handle, s->registry, path, &err);
    if (!status)
        status = strata_context_create(context, *engine, s->handle, &err);
    unlink(path);
    cr_assert(!status, "%s: %s", s->name, err.message);
}

void session_check_file(struct session *s)
{
    static strata_error err;
    strata_engine *engine = NULL;
    strata_context *context = NULL;
    strata_binding b = {.struct_size = sizeof b};
    int status = STRATA_OK, n = strata_engine_bindings(s->engine);
    reload(s, &engine, &context);
    for (int i = 0; i < n && !status; i++)
        if (s->data[i] && !strata_engine_binding(engine, i, &b, &err) && b.is_input)
            status = strata_copy_in(context, i, s->data[i], &err);
    if (!status)
        status = strata_context_run(context, &err);
    for (int i = 0; i < n && !status; i++) {
        strata_engine_binding(engine, i, &b, &err);
        char *first = calloc(2, (size_t)b.bytes), *second = first + b.bytes;
        cr_assert(first != NULL);
        status = b.is_input ? STRATA_OK : strata_copy_out(s->context, i, first, &err);
        if (!status && !b.is_input)
            status = strata_copy_out(context, i, second, &err);
        cr_expect(!memcmp(first, second, (size_t)b.bytes),
                  "%s: '%s' of the loaded engine", s->name, b.name);
        free(first);
    }
    cr_assert(!status, "%s: %s", s->name, err.message);
    strata_context_destroy(context);
    strata_engine_destroy(engine);
}
