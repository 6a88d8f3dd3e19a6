/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls of public functions are given (arguments.c): an object of each kind, and for
 * each type and name of an argument the text of a valid one (arguments.awk writes it).
 */
#ifndef TESTS_API_GIVEN_H
#define TESTS_API_GIVEN_H

#include <strata/batcher.h>
#include <strata/module.h>
#include <strata/parts.h>
#include <strata/sizes.h>
#include <strata/state.h>

#include "core/arguments.h"
#include "tests/support/scratch.h"

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)
#define NEVER ((void *)(uintptr_t)0x10) /* what a result is before the call */

static const char net[] = "[network]\nformat = 1\noutputs = y\n"
                          "[profile]\nN = 1, 2\n[input x]\nshape = N x 3 x 4 x 4\n"
                          "[layer y]\ntype = Activation\nkind = relu\n";
static const int64_t four[] = {1, 3, 4, 4};

/* Valid arguments; what functions make lands in the second half and is destroyed after
 * each call. */
struct fixture {
    strata_handle *handle; /* of the engine and the rest */
    strata_handle *bare;   /* nothing was allocated through it */
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    strata_batcher *batcher;
    strata_stream *stream;
    strata_event *event;
    strata_handle *new_handle;
    strata_registry *new_registry;
    strata_network *new_network;
    strata_engine *new_engine;
    strata_context *new_context;
    strata_batcher *new_batcher;
    strata_stream *new_stream;
    strata_event *new_event;
    strata_request *new_request;
    strata_desc desc, new_desc;
    strata_allocator allocator;
    strata_memory_stats stats;
    strata_binding binding;
    strata_step step;
    strata_dimension dimension;
    strata_estimate estimate;
    strata_image image;
    strata_batcher_stats batcher_stats;
    strata_part part;
    strata_memory part_memory[2];
    strata_context_stats context_stats;
    strata_profiler profiler;
    strata_registry_options registry_options;
    strata_network_options network_options;
    strata_batcher_options batcher_options;
    strata_request_options request_options;
    const void *inputs[1];
    void *outputs[1];
    int64_t numbers[STRATA_MAX_RANK];
    double ms;
    size_t engine_bytes; /* of the engine file in memory[1] */
};

_Alignas(256) static char memory[2][65536];

/* ---- what is given ----------------------------------------------------------------- */

static const struct {
    const char *function, *argument, *text;
    bool file; /* in the scratch folder */
} texts[] = {
    {"strata_context_set_dimension", "name", "N", false},
    {"strata_create", "device", "host", false},
    {"strata_desc_format", "format", "fp32:nchw", false},
    {"strata_desc_packed", "letters", "HW", false},
    {"strata_engine_find", "name", "x", false},
    {"strata_engine_load", "path", "net.engine", true},
    {"strata_engine_read_image", "path", "image.ppm", true},
    {"strata_engine_save", "path", "saved.engine", true},
    {"strata_network_load", "path", "net.ini", true},
};

/* A registry takes each name once. */
static const char *new_name(void)
{
    static char name[32];
    static int n;
    snprintf(name, sizeof name, "given%d", n++);
    return name;
}

static const char *text(const char *function, const char *argument)
{
    if (strcmp(function, "strata_registry_add") == 0)
        return new_name();
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (strcmp(texts[i].function, function) == 0 &&
            strcmp(texts[i].argument, argument) == 0)
            return texts[i].file ? in_scratch(texts[i].text) : texts[i].text;
    cr_assert_fail("no text for %s of %s: add one to the table", argument, function);
    return NULL;
}

static strata_request *give_request(struct fixture *f)
{
    strata_request *r = NULL;
    cr_assert_eq(strata_batcher_submit(f->batcher, &r, &f->request_options, NULL),
                 STRATA_OK);
    return r;
}

static int no_interrupt(void *user)
{
    (void)user;
    return 0;
}

static void no_log(void *user, int level, const char *line)
{
    (void)user, (void)level, (void)line;
}

static void no_watch(void *user, const strata_memory_event *event)
{
    (void)user, (void)event;
}

static void *get(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void put(void *user, void *ptr, size_t bytes)
{
    (void)user, (void)bytes;
    free(ptr);
}

/* Of strata_registry_add. */
static int run_nothing(const strata_run *r)
{
    (void)r;
    return STRATA_OK;
}

static const strata_row row = {.in = {STRATA_F32_NCHW}, .out = {STRATA_F32_NCHW}};
static const strata_impl impl = {
    .id = 1, .name = "c", .rows = {&row, 1, sizeof row}, .run = run_nothing};
static const strata_layer layer = {.struct_size = sizeof layer,
                                   .version = 1,
                                   .name = "Given",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .n_out = 1,
                                   .impls = {&impl, 1, sizeof impl}};
static const strata_layer *const layers[] = {&layer};
static const strata_module module = {.struct_size = sizeof module,
                                     .abi_minor = STRATA_ABI_MINOR,
                                     .ns = "test",
                                     .version = "1",
                                     .layers = layers,
                                     .n_layers = 1};

#define GIVE_const_int64_t_p four
#define GIVE_const_strata_allocator_p &f->allocator
#define GIVE_const_strata_batcher_options_p &f->batcher_options
#define GIVE_const_strata_context_p f->context
#define GIVE_const_strata_desc_p &f->desc
#define GIVE_const_strata_engine_p f->engine
#define GIVE_const_strata_engine_pconst_p (const strata_engine *const *)&f->engine
#define GIVE_const_strata_handle_p f->bare
#define GIVE_const_strata_image_p &f->image
#define GIVE_const_strata_module_p &module
#define GIVE_const_strata_network_options_p &f->network_options
#define GIVE_const_strata_network_p f->network
#define GIVE_const_strata_profiler_p &f->profiler
#define GIVE_const_strata_registry_options_p &f->registry_options
#define GIVE_const_strata_request_options_p &f->request_options
#define GIVE_const_void_p memory[1]
#define GIVE_double_p &f->ms
#define GIVE_int64_t_p f->numbers
#define GIVE_strata_batcher_p f->batcher
#define GIVE_strata_batcher_p_p &f->new_batcher
#define GIVE_strata_batcher_stats_p &f->batcher_stats
#define GIVE_strata_binding_p &f->binding
#define GIVE_strata_context_p f->context
#define GIVE_strata_context_stats_p &f->context_stats
#define GIVE_strata_context_p_p &f->new_context
#define GIVE_strata_desc_p &f->new_desc
#define GIVE_strata_engine_p f->engine
#define GIVE_strata_engine_p_p &f->new_engine
#define GIVE_strata_dimension_p &f->dimension
#define GIVE_strata_estimate_p &f->estimate
#define GIVE_strata_event_p f->event
#define GIVE_strata_event_p_p &f->new_event
#define GIVE_strata_handle_p f->bare
#define GIVE_strata_handle_p_p &f->new_handle
#define GIVE_strata_interrupt_fn no_interrupt
#define GIVE_strata_log_fn no_log
#define GIVE_strata_memory_fn no_watch
#define GIVE_strata_memory_stats_p &f->stats
#define GIVE_strata_network_p f->network
#define GIVE_strata_network_p_p &f->new_network
#define GIVE_strata_part_p &f->part
#define GIVE_strata_registry_p f->registry
#define GIVE_strata_registry_p_p &f->new_registry
#define GIVE_strata_request_p give_request(f)
#define GIVE_strata_request_p_p &f->new_request
#define GIVE_strata_step_p &f->step
#define GIVE_strata_stream_p f->stream
#define GIVE_strata_stream_p_p &f->new_stream
#define GIVE_uint64_t_p (uint64_t *)f->numbers
#define GIVE_void_p memory[0]
#define VALUE_layout STRATA_LAYOUT_NCHW
#define VALUE_size f->engine_bytes

enum {
    VALUE_batch = 1,
    VALUE_bytes = 64,
    VALUE_dtype = STRATA_FP32,
    VALUE_extent = 1,
    VALUE_index = 0,
    VALUE_level = STRATA_LOG_WARNING,
    VALUE_mode = STRATA_MATH_DEFAULT,
    VALUE_n = 1,
    VALUE_n_sizes = 1,
    VALUE_row = 0,
    VALUE_from = 0,
    VALUE_to = 0,
    VALUE_output = 0,
    VALUE_rank = 4,
    VALUE_status = STRATA_OK,
    VALUE_threads = 1,
    VALUE_use = 0,
    VALUE_wait = STRATA_WAIT_YIELD,
    VALUE_x = 2,
};

/* ---- the fixture ------------------------------------------------------------------ */

static void write_files(void)
{
    FILE *f = fopen(in_scratch("net.ini"), "w");
    cr_assert(f && fputs(net, f) >= 0 && fclose(f) == 0);
    f = fopen(in_scratch("image.ppm"), "w");
    cr_assert(f && fputs("P3 1 1 255 7 8 9\n", f) >= 0 && fclose(f) == 0);
}

static void open_fixture(struct fixture *f)
{
    strata_error err = {0};
    write_files();
    OK(strata_create(&f->handle, "host", &err));
    OK(strata_create(&f->bare, "host", &err));
    OK(strata_registry_create(&f->registry, NULL, &err));
    OK(strata_network_load(&f->network, in_scratch("net.ini"), f->registry, NULL, &err));
    OK(strata_engine_build(&f->engine, f->handle, f->network, &err));
    OK(strata_engine_save(f->engine, in_scratch("net.engine"), &err));
    struct blob saved = slurp(in_scratch("net.engine"));
    cr_assert(saved.size <= sizeof memory[1]);
    memcpy(memory[1], saved.bytes, f->engine_bytes = saved.size);
    free(saved.bytes);
    OK(strata_context_create(&f->context, f->engine, f->handle, &err));
    OK(strata_batcher_create(&f->batcher, f->engine, NULL, &err));
    OK(strata_stream_create(&f->stream, f->handle, &err));
    OK(strata_event_create(&f->event, f->handle, &err));
    OK(strata_desc_layout(&f->desc, STRATA_LAYOUT_NCHW, STRATA_FP32, four, 4, &err));
    OK(strata_event_record(f->event, f->stream, &err));
    OK(strata_event_synchronize(f->event, &err));
    f->allocator.struct_size = sizeof f->allocator;
    f->allocator.alloc = get;
    f->allocator.free = put;
    f->stats.struct_size = sizeof f->stats;
    f->binding.struct_size = sizeof f->binding;
    f->step.struct_size = sizeof f->step;
    f->dimension.struct_size = sizeof f->dimension;
    f->estimate.struct_size = sizeof f->estimate;
    f->image = (strata_image){.struct_size = sizeof f->image,
                              .pixels = (const uint8_t *)memory[1],
                              .width = 5,
                              .height = 3,
                              .channels = 3};
    f->profiler.struct_size = sizeof f->profiler;
    f->registry_options.struct_size = sizeof f->registry_options;
    f->network_options.struct_size = sizeof f->network_options;
    f->batcher_options.struct_size = sizeof f->batcher_options;
    f->context_stats.struct_size = sizeof f->context_stats;
    f->part_memory[0] = (strata_memory){.data = memory[1], .bytes = 192};
    f->part_memory[1] = (strata_memory){.data = memory[0], .bytes = 192};
    f->part = (strata_part){.struct_size = sizeof f->part,
                            .rows = 1,
                            .inputs = &f->part_memory[0],
                            .outputs = &f->part_memory[1]};
    f->inputs[0] = memory[1];
    f->outputs[0] = memory[0];
    f->request_options.struct_size = sizeof f->request_options;
    f->request_options.rows = 1;
    f->request_options.inputs = f->inputs;
    f->request_options.outputs = f->outputs;
}

/* How many results the call wrote; what it made is destroyed. */
static int take_results(struct fixture *f)
{
    int written = 0;
    void **const results[] = {
        (void **)&f->new_handle, (void **)&f->new_registry, (void **)&f->new_network,
        (void **)&f->new_engine, (void **)&f->new_context,  (void **)&f->new_batcher,
        (void **)&f->new_stream, (void **)&f->new_event,    (void **)&f->new_request,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
        written += *results[i] != NEVER;
        if (*results[i] == NEVER)
            *results[i] = NULL;
    }
    strata_batcher_destroy(f->new_batcher);
    strata_context_destroy(f->new_context);
    strata_engine_destroy(f->new_engine);
    strata_network_destroy(f->new_network);
    strata_registry_destroy(f->new_registry);
    strata_stream_destroy(f->new_stream);
    strata_event_destroy(f->new_event);
    strata_destroy(f->new_handle);
    if (f->new_request)
        strata_request_wait(f->new_request, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(results); i++)
        *results[i] = NEVER;
    return written;
}

static void close_fixture(struct fixture *f)
{
    strata_event_destroy(f->event);
    strata_stream_destroy(f->stream);
    strata_batcher_destroy(f->batcher);
    strata_context_destroy(f->context);
    strata_engine_destroy(f->engine);
    strata_network_destroy(f->network);
    strata_registry_destroy(f->registry);
    strata_destroy(f->bare);
    strata_destroy(f->handle);
}

#endif /* TESTS_API_GIVEN_H */
