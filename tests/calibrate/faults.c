/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation fails once, and all from there on, while a network is quantised and
 * while tables are read and written: an error that says so, nothing leaks, and the next
 * try works.
 */
#include "calibrate/collected.h"
#include "calibrate/loss.h"
#include "tests/support/fault.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_faults(void)
{
    fault_json(false);
}

TestSuite(calibrate_faults, .init = open_faults, .timeout = 600);

static const char text[] = "[network]\nformat = 1\noutputs = y\n"
                           "[input x]\nshape = 1 x 3 x 5 x 5\n[weights w]\nrandom = 1\n"
                           "[layer conv]\ntype = Convolution\nfilters = 4\n"
                           "kernel = 3x3\nweights = w\n"
                           "[layer pool]\ntype = Pooling\nglobal = yes\n"
                           "[layer y]\ntype = FullyConnected\nunits = 2\nweights = w\n";

static strata_registry *registry;
static strata_network *net;
static char path[] = "/tmp/strata-faults-XXXXXX";
/* Of the first time; what comes without an error says the same. */
static struct quantised expected;

static void open_network(void)
{
    strata_error err = {0};
    const struct network_memory memory = {.text = text, .text_size = sizeof text - 1};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK);
    cr_assert_eq(network_parse(&net, &memory, "net", registry, &err), STRATA_OK, "%s",
                 err.message);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
}

static void close_network(void)
{
    unlink(path);
    quantised_free(&expected);
    strata_network_destroy(net);
    strata_registry_destroy(registry);
}

/* Histograms of a collection that nobody ran. */
static void fill(struct collection *c)
{
    const float values[] = {-1, 0.5f, 2};
    for (size_t t = 0; t < net->n_tensors; t++)
        if (c->tensors[t])
            histogram_add(c->tensors[t], values, 3);
}

static int count(const char *in, const char *what)
{
    int n = 0;
    for (; (in = strstr(in, what)); in += strlen(what))
        n++;
    return n;
}

static void quantised_free_same(struct quantised *made)
{
    cr_expect_eq(count(made->text, "\nweights = w:"),
                 count(expected.text, "\nweights = w:"));
    cr_expect_eq(count(made->text, "\n[layer "), count(expected.text, "\n[layer "));
    cr_expect_eq(count(made->text, "\ninputs = "), count(expected.text, "\ninputs = "));
    cr_expect(made->weights_size == expected.weights_size &&
              memcmp(made->weights, expected.weights, made->weights_size) == 0);
    quantised_free(made);
}

static int make_files(const struct scheme *s, const struct ranges *r,
                      const double *saturated, strata_error *err)
{
    static const struct quantised_names names = {"w.safetensors", NULL};
    const struct quantising q = {
        .scheme = s, .registry = registry, .ranges = r, .saturated = saturated};
    struct quantised made;
    int status = quantised_make(&made, &q, &names, err);
    if (status == STRATA_OK) {
        if (!expected.text)
            expected = made;
        else
            quantised_free_same(&made);
    }
    return status;
}

/* All but the runs. */
static int quantise(strata_error *err)
{
    struct scheme s;
    struct collection c = {.scheme = NULL}, again = {.scheme = NULL};
    struct ranges r = {.n = 0}, read = {.n = 0};
    struct losses l = {.scheme = NULL};
    double *saturated = NULL;
    const double **corrections = NULL;
    int status = scheme_make(&s, net, &quant_int8, NULL, NULL, err);
    if (status != STRATA_OK)
        return status;
    status = collection_open(&c, &s, err);
    if (status == STRATA_OK) {
        fill(&c);
        status = collected_write(&c, path, 3, err);
    }
    if (status == STRATA_OK)
        status = collection_open(&again, &s, err);
    if (status == STRATA_OK)
        status = collected_read(&again, path, 3, err);
    if (status == STRATA_OK)
        status = collection_ranges(&r, &again, range_method_find("mse"), &quant_int8,
                                   RANGE_SHARE, err);
    if (status == STRATA_OK)
        status = collection_saturated(&saturated, &again, &r, err);
    if (status == STRATA_OK)
        status = ranges_write(&r, path, err);
    if (status == STRATA_OK)
        status = ranges_read(&read, path, err);
    if (status == STRATA_OK)
        status = ranges_share(&read, &s, err);
    if (status == STRATA_OK)
        status = losses_open(&l, &s, err);
    if (status == STRATA_OK)
        status = losses_corrections(&corrections, &l, err);
    if (status == STRATA_OK)
        status = make_files(&s, &read, saturated, err);
    free(corrections);
    losses_free(&l);
    free(saturated);
    ranges_free(&r);
    ranges_free(&read);
    collection_free(&c);
    collection_free(&again);
    scheme_free(&s);
    return status;
}

Test(calibrate_faults, each_allocation_may_fail)
{
    strata_error err = {0};
    open_network();
    fault_arm(FAULT_MEMORY, 0, false);
    cr_assert_eq(quantise(&err), STRATA_OK, "%s", err.message);
    const long calls = fault_disarm();
    long refused = 0;
    cr_assert_gt(calls, 50);
    for (long at = 1; at <= calls; at++)
        for (int lasting = 0; lasting < 2; lasting++) {
            err = (strata_error){0};
            const long before = fault_blocks();
            fault_arm(FAULT_MEMORY, at, lasting);
            const int status = quantise(&err);
            fault_disarm();
            cr_expect(fault_blocks() == before, "call %ld of %ld: %ld blocks leak", at,
                      calls, fault_blocks() - before);
            cr_expect(status == STRATA_ENOMEM || status == STRATA_OK,
                      "call %ld: status %d, %s", at, status, err.message);
            refused += status != STRATA_OK;
        }
    /* Names of attributes and types are looked up for a shorter text, which is not
     * needed. */
    cr_expect(refused > calls, "%ld of %ld refused", refused, 2 * calls);
    err = (strata_error){0};
    cr_expect_eq(quantise(&err), STRATA_OK, "%s", err.message);
    close_network();
}

Test(calibrate_faults, each_file_operation_may_fail)
{
    strata_error err = {0};
    open_network();
    fault_arm(FAULT_IO, 0, false);
    cr_assert_eq(quantise(&err), STRATA_OK, "%s", err.message);
    const long calls = fault_disarm();
    cr_assert_gt(calls, 5);
    for (long at = 1; at <= calls; at++) {
        err = (strata_error){0};
        const long before = fault_blocks();
        fault_arm(FAULT_IO, at, true);
        const int status = quantise(&err);
        fault_disarm();
        cr_expect(fault_blocks() == before, "call %ld of %ld leaks", at, calls);
        /* What is closed last has been written. */
        cr_expect(status == STRATA_OK ? at == calls : strstr(err.message, path) != NULL,
                  "call %ld of %ld: status %d, %s", at, calls, status, err.message);
    }
    close_network();
}
