/* SPDX-License-Identifier: Apache-2.0
 *
 * Every public function with each of its pointers NULL: the calls are made from the
 * headers (arguments.awk), what they are given is here.
 */
#include <strata/batcher.h>
#include <strata/module.h>
#include <strata/parts.h>
#include <strata/sizes.h>
#include <strata/state.h>

#include "core/arguments.h"
#include "registry/registry.h"
#include "tests/support/scratch.h"

TestSuite(arguments, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

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

/* ---- calls ------------------------------------------------------------------------ */

#define ARGUMENTS_AT_MOST 8

struct function {
    const char *name;
    int64_t (*call)(struct fixture *f, unsigned null, strata_error *err);
    bool errors; /* it has an err, and gives a status or a pointer */
    struct {
        const char *name;
        bool pointer, object; /* object: the address of a pointer to a new one */
    } arguments[ARGUMENTS_AT_MOST];
};

#include "tests/api/arguments_calls.h"

/* Where NULL has a meaning, as the header's comments say. */
static const char *const optional[] = {
    "strata_batcher_create options",
    "strata_batcher_create_over options",
    "strata_batcher_histogram out",
    "strata_batcher_submit out",
    "strata_context_bind data",
    "strata_context_enqueue input_consumed",
    "strata_context_set_profiler profiler",
    "strata_create device",
    "strata_engine_batches out",
    "strata_host_free ptr",
    "strata_network_load options",
    "strata_registry_create options",
    "strata_set_logger fn",
    "strata_set_logger user",
    "strata_set_memory_observer fn",
    "strata_set_memory_observer user",
    "strata_set_stream stream",
    "strata_stream_wrap native",
};

static bool is_optional(const char *function, const char *argument)
{
    char both[128];
    snprintf(both, sizeof both, "%s %s", function, argument);
    for (size_t i = 0; i < ARRAY_LENGTH(optional); i++)
        if (strcmp(optional[i], both) == 0)
            return true;
    return strcmp(argument, "err") == 0;
}

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

static bool makes_objects(const struct function *one)
{
    bool found = false;
    for (size_t a = 0; one->arguments[a].name; a++)
        found |= one->arguments[a].object;
    return found;
}

/* One pointer is NULL, with a message and (all the same) without. */
static void try_null(struct fixture *f, const struct function *one, size_t argument,
                     size_t error)
{
    const char *name = one->arguments[argument].name;
    const bool may = is_optional(one->name, name);
    for (unsigned silent = 0; silent < 1u + one->errors; silent++) {
        strata_error err = {.status = STRATA_EIO, .message = "of an earlier call"};
        char said[160];
        const unsigned null = 1u << argument | silent << error;
        const int64_t got = one->call(f, null, &err);
        snprintf(said, sizeof said, "%s: %s is NULL", one->name, name);
        const int results = take_results(f);
        cr_expect_eq(results, makes_objects(one) && !one->arguments[argument].object,
                     "%s without %s writes %d results", one->name, name, results);
        const bool none = strcmp(one->name, "strata_engine_state") == 0; /* of states */
        const bool fine = got == STRATA_OK || got == STRATA_EUNSUPPORTED /* on the host */
                          || (none && got == STRATA_EINVAL);
        if (may || !one->errors)
            cr_expect(may ? !one->errors || fine : got == 0 || got == -1,
                      "%s without %s gives %lld", one->name, name, (long long)got);
        else if (argument != error && !(null >> error & 1))
            cr_expect(err.status == STRATA_EINVAL &&
                          strstr(err.message, said) == err.message,
                      "%s gives %d: %s", said, err.status, err.message);
        else
            cr_expect(got == STRATA_EINVAL || got == 0, "%s gives %lld", said,
                      (long long)got);
    }
}

/* A host pointer for a result that is no status. */
static bool gives_pointer(const char *function)
{
    return strcmp(function, "strata_host_alloc") == 0;
}

Test(arguments, every_function_takes_null_for_each_of_its_pointers)
{
    struct fixture f = {0};
    open_fixture(&f);
    take_results(&f);
    for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
        const struct function *one = &functions[i];
        size_t error = 0;
        while (one->errors && strcmp(one->arguments[error].name, "err") != 0)
            error++;
        for (size_t a = 0; one->arguments[a].name; a++)
            if (one->arguments[a].pointer && !gives_pointer(one->name))
                try_null(&f, one, a, error);
    }
    close_fixture(&f);
}

Test(arguments, host_memory_needs_a_handle)
{
    strata_error err = {0};
    cr_expect_null(strata_host_alloc(NULL, 64, &err));
    cr_expect_eq(err.status, STRATA_EINVAL);
    cr_expect_str_eq(err.message, "strata_host_alloc: handle is NULL");
    cr_expect_null(strata_host_alloc(NULL, 64, NULL));
}

/* The table names arguments that there are. */
Test(arguments, optional_arguments_are_there)
{
    for (size_t i = 0; i < ARRAY_LENGTH(optional); i++) {
        bool found = false;
        for (size_t k = 0; k < ARRAY_LENGTH(functions); k++)
            for (size_t a = 0; functions[k].arguments[a].name; a++) {
                char both[128];
                snprintf(both, sizeof both, "%s %s", functions[k].name,
                         functions[k].arguments[a].name);
                found |= strcmp(both, optional[i]) == 0;
            }
        cr_expect(found, "%s", optional[i]);
    }
}

/* What plugins call. */
Test(arguments, the_host_s_table_takes_null)
{
    struct fixture f = {0};
    strata_error err = {0};
    const strata_host *host = registry_host();
    const char *none = NULL;
    strata_node node = {.struct_size = sizeof node, .err = &err};
    void *ptr = NULL;
    open_fixture(&f); /* building one offers the extensions */
    cr_expect_eq(host->fail(NULL, STRATA_EIO, "%d", 1), STRATA_EIO);
    cr_expect_eq(host->fail(NULL, STRATA_EIO, none, 0), STRATA_EIO);
    cr_expect_eq(host->fail(&err, STRATA_EIO, none, 0), STRATA_EIO);
    cr_expect_str_eq(err.message, strata_status_text(STRATA_EIO));
    host->log(STRATA_LOG_ERROR, none, 0);
    cr_expect_null(host->extension(NULL));
    const strata_pack *pack = host->extension(STRATA_PACK_V1);
    cr_assert_not_null(pack);
    cr_expect_eq(pack->alloc(NULL, 64, &ptr), STRATA_EINVAL);
    error_clear(&err);
    cr_expect_eq(pack->alloc(&node, 64, NULL), STRATA_EINVAL);
    cr_expect_str_eq(err.message, "strata.pack/1: out is NULL");
    close_fixture(&f);
}
