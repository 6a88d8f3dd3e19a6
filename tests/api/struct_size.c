/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that say their size: of callers that are older or newer than the library, or
 * that did not say.
 */
#include "core/arguments.h"
#include "strata/sizes.h"
#include "tests/engine/engine_session.h"

TestSuite(struct_size, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static void open_net(struct session *s)
{
    static const char net[] = "[network]\nformat = 1\noutputs = y\n"
                              "[input x]\nshape = 1 x 3 x 4 x 4\n"
                              "[layer y]\ntype = Activation\nkind = relu\n";
    cr_assert_eq(session_build(s, spill_text("net.ini", net), NULL, 0), STRATA_OK, "%s",
                 s->err.message);
}

/* A caller of any age: `size` is what it says its struct has. */
static int ask(struct session *s, int which, void *out, size_t size, strata_error *err)
{
    memset(out, 0x5a, 1024);
    memcpy(out, &size, sizeof size);
    switch (which) {
    case 0:
        return strata_engine_binding(s->engine, 0, out, err);
    case 1:
        return strata_engine_step(s->engine, 0, out, err);
    default:
        return strata_get_memory_stats(s->handle, out, err);
    }
}

Test(struct_size, results_are_as_large_as_the_caller_says)
{
    static const struct {
        const char *name;
        size_t size;
    } structs[] = {{"strata_binding", sizeof(strata_binding)},
                   {"strata_step", sizeof(strata_step)},
                   {"strata_memory_stats", sizeof(strata_memory_stats)}};
    struct session s;
    _Alignas(16) unsigned char out[1024], known[1024];
    strata_error err = {0};
    open_net(&s);
    for (int i = 0; i < (int)ARRAY_LENGTH(structs); i++) {
        const size_t size = structs[i].size, refused[] = {0, 8, size - 8, SIZE_MAX, 5000};
        for (size_t k = 0; k < ARRAY_LENGTH(refused); k++) {
            cr_expect_eq(ask(&s, i, out, refused[k], &err), STRATA_EINVAL);
            cr_expect_eq(out[8], 0x5a, "%s: written all the same", structs[i].name);
            cr_expect_not_null(strstr(err.message, structs[i].name), "%s", err.message);
        }
        cr_assert_eq(ask(&s, i, known, size, &err), STRATA_OK, "%s", err.message);
        cr_expect_eq(known[size], 0x5a, "%s: written past its end", structs[i].name);
        cr_assert_eq(ask(&s, i, out, size + 16, &err), STRATA_OK, "%s", err.message);
        cr_expect_eq(memcmp(out + size - 8, known + size - 8, 8), 0,
                     "%s: its last member", structs[i].name);
        for (size_t k = 0; k < 16; k++)
            cr_expect_eq(out[size + k], 0, "%s: not ours, not 0", structs[i].name);
        cr_expect_eq(out[size + 16], 0x5a);
    }
    release(&s);
}

/* Structs of two versions of the library, either way. */
Test(struct_size, structs_of_other_versions_are_taken_and_given)
{
    struct older {
        size_t struct_size;
        int64_t a;
    } older = {sizeof older, 1};
    struct newer {
        size_t struct_size;
        int64_t a, b;
    } newer = {sizeof newer, 3, 4}, taken;
    struct older old_taken;
    struct_take(&taken, sizeof taken, &older, older.struct_size);
    cr_expect(taken.a == 1 && taken.b == 0);
    struct_take(&old_taken, sizeof old_taken, &newer, newer.struct_size);
    cr_expect(old_taken.a == 3);
    struct_give(&older, &newer, sizeof newer);
    cr_expect(older.struct_size == sizeof older && older.a == 3);
    older.a = 7;
    struct_give(&newer, &older, sizeof older);
    cr_expect(newer.struct_size == sizeof newer && newer.a == 7 && newer.b == 0);
}

#define REFUSED(words, call)                                                             \
    do {                                                                                 \
        cr_expect_eq((call), STRATA_EINVAL);                                             \
        cr_expect_not_null(strstr(s.err.message, (words)), "%s", s.err.message);         \
    } while (0)

static void *no_memory(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

static void free_none(void *user, void *ptr, size_t bytes)
{
    (void)user, (void)ptr, (void)bytes;
}

Test(struct_size, what_is_passed_must_say_it)
{
    struct session s;
    strata_handle *bare = NULL;
    strata_context *c = NULL;
    strata_network *none = NULL;
    strata_allocator allocator = {.alloc = no_memory, .free = free_none};
    strata_profiler profiler = {.struct_size = 8};
    strata_network_options options = {.struct_size = sizeof options, .n_set = 1};
    open_net(&s);
    cr_assert_eq(strata_create(&bare, "host", &s.err), STRATA_OK);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, &s.err), STRATA_OK);
    REFUSED("strata_allocator.struct_size is 0",
            strata_set_allocator(bare, &allocator, &s.err));
    allocator.struct_size = sizeof allocator;
    cr_expect_eq(strata_set_allocator(bare, &allocator, &s.err), STRATA_OK);
    REFUSED("strata_profiler.struct_size is 8",
            strata_context_set_profiler(c, &profiler, &s.err));
    REFUSED(
        "strata_network_options.set is NULL for 1",
        strata_network_load(&none, in_scratch("net.ini"), s.registry, &options, &s.err));
    strata_context_destroy(c);
    strata_destroy(bare);
    release(&s);
}

Test(struct_size, a_list_has_no_null_in_it)
{
    struct session s;
    strata_network *none = NULL;
    strata_registry *empty = NULL;
    const char *set[] = {"build.precision=fp32", NULL}, *files[] = {NULL};
    strata_network_options options = {.struct_size = sizeof options};
    strata_registry_options modules = {sizeof modules, .files = files, .n_files = 1};
    open_net(&s);
    options.set = set;
    options.n_set = 2;
    REFUSED(
        "strata_network_options.set[1] is NULL",
        strata_network_load(&none, in_scratch("net.ini"), s.registry, &options, &s.err));
    options = (strata_network_options){sizeof options, .define = set + 1, .n_define = 1};
    REFUSED(
        "strata_network_options.define[0] is NULL",
        strata_network_load(&none, in_scratch("net.ini"), s.registry, &options, &s.err));
    REFUSED("strata_registry_options.files[0] is NULL",
            strata_registry_create(&empty, &modules, &s.err));
    release(&s);
}

Test(struct_size, an_engine_of_one_shape_is_estimated_without_sizes)
{
    struct session s;
    strata_estimate estimate = {.struct_size = sizeof estimate};
    open_net(&s);
    cr_assert_eq(strata_engine_dimensions(s.engine), 0);
    cr_expect_eq(strata_engine_estimate(s.engine, NULL, 0, &estimate, &s.err), STRATA_OK,
                 "%s", s.err.message);
    cr_expect(estimate.planned);
    release(&s);
}
