/* SPDX-License-Identifier: Apache-2.0
 *
 * Every public function with each of its pointers NULL: the calls are made from the
 * headers (arguments.awk), what they are given is in given.h.
 */
#include "tests/api/given.h"

#include "registry/registry.h"

TestSuite(arguments, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

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
    "strata_set_interrupt fn",
    "strata_set_interrupt user",
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
